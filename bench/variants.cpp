// SPDX-License-Identifier: MIT
#include "bench/variants.h"

#include <torch/torch.h>

#include <chrono>
#include <memory>

#include "elliptical/base/errors.h"
#include "elliptical/nn/attention/attention.h"
#include "elliptical/nn/initialize.h"

namespace elliptical::bench {
namespace {

/// A variant whose time grows with a power of the tokens is not asked for more of them after a
/// measurement that took longer.
constexpr double kLongestSeconds = 5;

/// The second of two layers over N tokens: the first has no metric to compute.
int64_t layer_memory(const TrainingCase& shape, const std::string& attention, int64_t N) {
  const nn::AttentionShape layer_shape{.dim = shape.dim,
                                       .num_heads = shape.num_heads,
                                       .is_causal = true,
                                       .layer = 1,
                                       .num_layers = 2,
                                       .window = N};
  const auto layer = nn::make_attention(measured_attention(attention), layer_shape);
  const RandomKey key(1);
  const auto normal = [&](at::IntArrayRef sizes, const char* purpose) {
    at::Tensor x = torch::empty(sizes);
    nn::fill_normal(x, 0.0, 1.0, key.derive(purpose));
    return x;
  };
  {
    const torch::NoGradGuard no_grad;
    for (at::Tensor& parameter : layer->parameters()) {
      if (parameter.dim() == 2) nn::fill_normal(parameter, 0.0, 0.1, key.derive("weights"));
    }
  }
  const at::Tensor x = normal({1, N, shape.dim}, "x").requires_grad_();
  auto pass = nn::Pass::of_training(RandomKey(0));
  pass.is_causal = true;
  pass.layer = 1;
  // Held here, too: the layer replaces those of the pass by its own.
  const at::Tensor q = normal({1, shape.num_heads, N, layer_shape.head_dim()}, "q");
  const at::Tensor v = normal({1, shape.num_heads, N, layer_shape.head_dim()}, "v");
  pass.previous_q = q;
  pass.previous_v = v;
  return peak_memory([&] { layer->forward(x, pass).sum().backward(); });
}

std::vector<MemoryPoint> memory_growth(const TrainingCase& shape,
                                       const std::string& attention,
                                       const std::vector<int64_t>& lengths) {
  std::vector<MemoryPoint> points;
  for (const int64_t N : lengths) {
    const auto start = std::chrono::steady_clock::now();
    points.push_back({N, layer_memory(shape, attention, N)});
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    if (took.count() > kLongestSeconds) break;
  }
  return points;
}

}  // namespace

std::vector<VariantResult> measure_variants(const TrainingCase& shape,
                                            const std::vector<std::string>& attentions,
                                            const std::vector<int64_t>& lengths,
                                            int repeats,
                                            const ProgressFn& progress) {
  std::vector<VariantResult> results(attentions.size());
  std::vector<std::unique_ptr<Trainer>> owned;
  std::vector<Trainer*> trainers;
  for (size_t i = 0; i < attentions.size(); ++i) {
    VariantResult& result = results[i];
    result.attention = attentions[i];
    try {
      owned.push_back(make_our_trainer(shape, attentions[i]));
    } catch (const ConfigError& error) {
      result.refusal = error.what();
      continue;
    }
    trainers.push_back(owned.back().get());
    if (progress) progress(i, attentions.size(), "memory of " + attentions[i]);
    result.memory = memory_growth(shape, attentions[i], lengths);
  }
  const auto steps = measure_training(shape, trainers, repeats, progress);
  size_t next = 0;
  for (VariantResult& result : results) {
    if (!result.refusal.empty()) continue;
    result.num_parameters = steps[next].num_parameters;
    result.step = steps[next].timing;
    ++next;
  }
  return results;
}

}  // namespace elliptical::bench
