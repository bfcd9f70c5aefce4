// SPDX-License-Identifier: MIT
#include "bench/contestant.h"

#include <torch/torch.h>

#include <chrono>
#include <functional>
#include <utility>

#include "bench/onnxruntime_peer.h"
#include "elliptical/base/errors.h"
#include "elliptical/base/names.h"
#include "elliptical/ops/attention.h"

namespace elliptical::bench {
namespace {

/// A function of q, k and v that autograd can differentiate.
class TorchContestant : public Contestant {
 public:
  using Attention = std::function<at::Tensor(const Problem&)>;

  TorchContestant(std::string name, bool with_metric, const Problem& problem, Attention attention)
      : name_(std::move(name)),
        with_metric_(with_metric),
        problem_(problem),
        attention_(std::move(attention)) {}

  std::string name() const override { return name_; }
  bool with_metric() const override { return with_metric_; }
  std::string refusal(Pass) const override { return ""; }

  Results results(Pass pass) override {
    if (pass == Pass::kForward) {
      const at::NoGradGuard no_grad;
      return {attention_(problem_), std::nullopt};
    }
    const at::Tensor out = attention_(problem_);
    const auto grads =
        torch::autograd::grad({out}, {problem_.q, problem_.k, problem_.v}, {problem_.d_out});
    return {out, std::array{grads[0], grads[1], grads[2]}};
  }

  double time(Pass pass) override {
    const auto start = std::chrono::steady_clock::now();
    const Results kept = results(pass);  // freed after the clock has stopped
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  }

 private:
  std::string name_;
  bool with_metric_;
  const Problem& problem_;
  Attention attention_;
};

at::Tensor ours(const Problem& problem, const std::optional<at::Tensor>& metric) {
  return ops::attention(problem.q, problem.k, problem.v, metric,
                        {.is_causal = problem.shape.is_causal,
                         .scale = problem.shape.scale,
                         .attn_mask = problem.additive_mask,
                         .key_lengths = problem.key_lengths});
}

at::Tensor sdpa(const Problem& problem) {
  const auto& mask = problem.additive_mask ? problem.additive_mask : problem.key_padding_mask;
  return at::scaled_dot_product_attention(problem.q, problem.k, problem.v, mask, /*dropout_p=*/0.0,
                                          problem.shape.is_causal, problem.shape.scale);
}

}  // namespace

std::unique_ptr<Contestant> make_ours(const Problem& problem) {
  return std::make_unique<TorchContestant>("elliptical", true, problem,
                                           [](const Problem& p) { return ours(p, p.metric); });
}

std::unique_ptr<Contestant> make_peer(const std::string& name,
                                      const Problem& problem,
                                      int num_threads) {
  if (name == "sdpa") return std::make_unique<TorchContestant>(name, false, problem, sdpa);
  if (name == "unfused") {
    return std::make_unique<TorchContestant>(name, true, problem, [](const Problem& p) {
      return unfused_attention(p, p.q, p.k, p.v, p.metric);
    });
  }
  if (name == "plain") {
    return std::make_unique<TorchContestant>(
        name, false, problem, [](const Problem& p) { return ours(p, std::nullopt); });
  }
  if (name == "ort") return std::make_unique<OnnxRuntimePeer>(problem, num_threads);
  throw UsageError("peer: " + unknown_name(name, peer_names()));
}

}  // namespace elliptical::bench
