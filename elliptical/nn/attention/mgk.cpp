// SPDX-License-Identifier: MIT
#include "elliptical/nn/attention/mgk.h"

#include <ATen/CPUGeneratorImpl.h>
#include <torch/torch.h>

#include <array>
#include <cmath>

#include "elliptical/base/errors.h"
#include "elliptical/base/infinity.h"
#include "elliptical/base/option_limits.h"
#include "elliptical/nn/attention/attend.h"
#include "elliptical/nn/initialize.h"
#include "elliptical/ops/attention.h"

namespace elliptical::nn {
namespace {

constexpr double kSmallestWeight = 1e-12;  ///< of a component: log pi stays finite
constexpr double kShiftStd = 0.5;

using Pair = std::array<at::Tensor, 2>;

/// Queries and keys with more coordinates, such that for component r
///   query . key_r - common = log pi^r - c_r |q - k^r|^2.
struct Augmented {
  at::Tensor query;   ///< (B, H, N, D')
  Pair keys;          ///< (B, H, M, D')
  at::Tensor common;  ///< (B, H, N), c_1 |q|^2: left out of the products, where it would cancel
};

class MgkMixer : public HeadMixer {
 public:
  MgkMixer(const MgkOptions& options, const AttentionShape& shape);

  at::Tensor mix(const Heads& heads, const Pass& pass, std::unique_ptr<MixerState>* state) override;
  bool needs_second_keys() const override { return !options_.shifted_keys; }
  std::optional<std::string> why_no_streaming() const override {
    return source_ ? source_->why_no_streaming() : std::nullopt;
  }
  std::map<std::string, LabelValue> labels() const override;

 private:
  Augmented augment(const Heads& heads, const std::optional<at::Tensor>& metric) const;
  at::Tensor log_weights(int64_t r, int64_t num_keys) const;
  at::Tensor mix_soft(const Heads& heads, const Augmented& coordinates, const Pass& pass) const;
  at::Tensor mix_hard(const Heads& heads, const Augmented& coordinates, const Pass& pass) const;
  at::Tensor map(const Augmented& coordinates, const Pass& pass) const;

  MgkOptions options_;
  double dropout_;
  std::array<double, 2> c_{};
  at::Tensor pi_;      ///< (2, H, window); undefined with mixture = "hard"
  at::Tensor shifts_;  ///< (2, H, D); undefined with two maps
  std::unique_ptr<MetricSource> source_;
};

MgkMixer::MgkMixer(const MgkOptions& options, const AttentionShape& shape)
    : options_(options), dropout_(shape.dropout) {
  if (options.bandwidths.size() != 2) {
    throw ConfigError("mgk attention: bandwidths must be two numbers, got " +
                      std::to_string(options.bandwidths.size()));
  }
  for (size_t r = 0; r < 2; ++r) {
    c_[r] = options.bandwidths[r] / std::sqrt(static_cast<double>(shape.head_dim()));
  }
  if (!options.hard) {
    const int64_t window = options.window.value_or(shape.window);
    if (window < 1) {
      throw ConfigError(
          "mgk attention: window must be given, got none: the model around it has no fixed number "
          "of tokens (set window to the longest sequence, or mixture = \"hard\")");
    }
    if (window < shape.window) {
      throw ConfigError("mgk attention: window must be at least the model's " +
                        std::to_string(shape.window) + " tokens, got " + std::to_string(window));
    }
    pi_ = register_parameter("pi", torch::full({2, shape.num_heads, window}, 0.5));
  }
  if (options.shifted_keys) {
    shifts_ = torch::zeros({2, shape.num_heads, shape.head_dim()});
    at::Tensor second = shifts_[1];
    fill_normal(second, 0.0, kShiftStd,
                RandomKey(0).derive("mgk shifts").derive(static_cast<uint64_t>(shape.layer)));
    shifts_ = register_parameter("shifts", shifts_);
  }
  if (options.is_elliptical) {
    source_ = std::make_unique<MetricSource>(options, shape, std::nullopt, *this);
  }
}

std::map<std::string, LabelValue> MgkMixer::labels() const {
  std::map<std::string, LabelValue> all{{"leaks_future", false}};
  if (source_) all = source_->labels();
  all["mixture"] = std::string(options_.hard ? "hard" : "learned");
  return all;
}

at::Tensor MgkMixer::log_weights(int64_t r, int64_t num_keys) const {
  const int64_t window = pi_.size(2);
  TORCH_CHECK_VALUE(num_keys <= window, "mgk attention: there must be at most ", window,
                    " tokens, the length of the learned mixture weights, got ", num_keys,
                    " (train with a larger model.attention.window)");
  return pi_[r].narrow(1, 0, num_keys).clamp(kSmallestWeight, 1.0).log();  // (H, M)
}

Augmented MgkMixer::augment(const Heads& heads, const std::optional<at::Tensor>& metric) const {
  Pair keys{heads.k, heads.second_k};
  for (size_t r = 0; r < 2 && options_.shifted_keys; ++r) {
    keys[r] = heads.k - shifts_[static_cast<int64_t>(r)].unsqueeze(1);
  }
  at::Tensor q = heads.q;
  const bool row_per_query = metric && metric->size(2) > 1;
  if (metric && !row_per_query) {
    const at::Tensor root = metric->sqrt();
    q = q * root;
    for (at::Tensor& k : keys) k = k * root;
  }
  const auto column = [](const at::Tensor& like) { return like.narrow(-1, 0, 1); };
  // |q|^2 - 2 q . k + |k|^2, with M_d in each term where every query has its own metric.
  const at::Tensor weighted = row_per_query ? q * *metric : q;
  const at::Tensor square = (weighted * q).sum(-1, /*keepdim=*/true);  // (B, H, N, 1)
  Augmented result;
  result.common = square.squeeze(-1) * c_[0];
  std::vector<at::Tensor> query{weighted, square, at::ones_like(column(q))};
  if (row_per_query) query.push_back(metric->expand_as(q));
  result.query = at::cat(query, -1);
  for (size_t r = 0; r < 2; ++r) {
    const at::Tensor& k = keys[r];
    at::Tensor constant =
        row_per_query ? at::zeros_like(column(k)) : k.square().sum(-1, /*keepdim=*/true) * -c_[r];
    if (!options_.hard) {
      constant = constant + log_weights(static_cast<int64_t>(r), k.size(2)).unsqueeze(-1);
    }
    std::vector<at::Tensor> key{k * (2 * c_[r]), at::full_like(column(k), c_[0] - c_[r]), constant};
    if (row_per_query) key.push_back(k.square() * -c_[r]);
    result.keys[r] = at::cat(key, -1);
  }
  return result;
}

at::Tensor MgkMixer::mix_soft(const Heads& heads,
                              const Augmented& coordinates,
                              const Pass& pass) const {
  ops::AttentionOptions call{
      .is_causal = pass.is_causal, .scale = 1.0, .key_lengths = pass.key_lengths};
  if (pass.training && dropout_ > 0.0) {
    call.dropout_p = dropout_;
    // The same for both components: what is dropped is a token, not one of its keys.
    call.dropout_seed = pass.seed("attention dropout");
  }
  Pair out, lse;
  for (size_t r = 0; r < 2; ++r) {
    std::tie(out[r], lse[r]) =
        ops::attention_with_lse(coordinates.query, coordinates.keys[r], heads.v, {}, call);
    // A padded query sees nothing; its output is 0 whatever its weights.
    if (pass.key_lengths) lse[r] = at::where(lse[r].isfinite(), lse[r], 0.0);
  }
  at::Tensor total = at::logaddexp(lse[0], lse[1]);
  if (options_.epsilon > 0) {
    total = at::logaddexp(total, coordinates.common + std::log(options_.epsilon));
  }
  const auto part = [&](size_t r) { return out[r] * (lse[r] - total).exp().unsqueeze(-1); };
  return part(0) + part(1);
}

at::Tensor MgkMixer::map(const Augmented& coordinates, const Pass& pass) const {
  const at::Tensor seen =
      visible_keys(coordinates.query.size(2), coordinates.keys[0].size(2), pass);
  const auto logits = [&](size_t r) {
    return coordinates.query.matmul(coordinates.keys[r].transpose(-2, -1));
  };
  const at::Tensor joint =
      options_.hard ? at::maximum(logits(0), logits(1)) : at::logaddexp(logits(0), logits(1));
  const at::Tensor visible = at::where(seen, joint, -kInfinity);
  if (options_.hard || options_.epsilon == 0) {
    return at::where(seen, visible.softmax(-1), 0.0);
  }
  const at::Tensor total =
      at::logaddexp(visible.logsumexp(-1), coordinates.common + std::log(options_.epsilon));
  return (visible - total.unsqueeze(-1)).exp();
}

at::Tensor MgkMixer::mix_hard(const Heads& heads,
                              const Augmented& coordinates,
                              const Pass& pass) const {
  at::Tensor weights = map(coordinates, pass);
  if (pass.training && dropout_ > 0.0) {
    const at::Generator generator = at::detail::createCPUGenerator(pass.seed("attention dropout"));
    weights = weights * at::bernoulli(at::full_like(weights, 1.0 - dropout_), generator) /
              (1.0 - dropout_);
  }
  return weights.matmul(heads.v);
}

at::Tensor MgkMixer::mix(const Heads& heads, const Pass& pass, std::unique_ptr<MixerState>* state) {
  std::optional<at::Tensor> metric;
  if (source_) metric = source_->metric(heads, pass, state);
  const Augmented coordinates = augment(heads, metric);
  leave_trace(heads, metric, [&] { return map(coordinates, pass); }, pass);
  return options_.hard ? mix_hard(heads, coordinates, pass) : mix_soft(heads, coordinates, pass);
}

}  // namespace

void MgkOptions::visit(FieldList& fields) {
  fields.add_choice("keys",
                    {.names = {"shifted", "two-maps"},
                     .get = [this] { return shifted_keys ? "shifted" : "two-maps"; },
                     .set = [this](const std::string& name) { shifted_keys = name == "shifted"; }},
                    "the two keys of a token come from a map each, or from one map and two learned "
                    "shifts");
  fields.add_choice("mixture",
                    {.names = {"hard", "learned"},
                     .get = [this] { return hard ? "hard" : "learned"; },
                     .set = [this](const std::string& name) { hard = name == "hard"; },
                     .selects_fields = true},
                    "weigh both keys by learned numbers, or take the nearer key alone");
  fields.add("bandwidths", bandwidths, "of the two keys, in units of 1 / sqrt(D)", above(0));
  if (!hard) {
    fields.add("epsilon", epsilon, "added to the sum of weights", at_least(0));
    fields.add("window", window, "tokens that have mixture weights; the model's when absent",
               between(1, kMostTokens));
  }
  visit_distance(fields);
}

std::unique_ptr<Options> MgkOptions::clone() const { return std::make_unique<MgkOptions>(*this); }

std::shared_ptr<HeadMixer> make_mgk_mixer(const MgkOptions& options, const AttentionShape& shape) {
  return std::make_shared<MgkMixer>(options, shape);
}

std::shared_ptr<Attention> make_mgk(const Options& options, const AttentionShape& shape) {
  return std::make_shared<MultiHead>(
      shape, make_mgk_mixer(dynamic_cast<const MgkOptions&>(options), shape));
}

}  // namespace elliptical::nn
