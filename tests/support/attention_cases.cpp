// SPDX-License-Identifier: MIT
#include "tests/support/attention_cases.h"

#include <ATen/CPUGeneratorImpl.h>
#include <torch/torch.h>

#include <limits>

namespace elliptical::support {

std::vector<AttentionCase> attention_cases() {
  return {
      {.name = "plain"},
      {.name = "scale", .scale = 0.3},
      {.name = "metric_row", .metric = {2, 2, 1, 3}},
      {.name = "metric_per_query", .metric = {2, 2, 5, 3}},
      {.name = "metric_shared_by_all", .metric = {1, 1, 1, 3}},
      {.name = "metric_shared_by_heads", .metric = {2, 1, 5, 3}},
      {.name = "metric_shared_by_batch", .metric = {1, 2, 5, 3}},
      {.name = "causal", .metric = {2, 2, 5, 3}, .is_causal = true},
      {.name = "causal_more_keys", .N = 3, .M = 6, .metric = {2, 2, 3, 3}, .is_causal = true},
      {.name = "causal_fewer_keys", .N = 6, .M = 4, .metric = {2, 2, 1, 3}, .is_causal = true},
      {.name = "grouped_heads", .H = 4, .Hk = 2, .metric = {2, 4, 1, 3}},
      {.name = "one_key_head", .H = 3, .Hk = 1, .is_causal = true},
      {.name = "mask_keep",
       .metric = {2, 2, 1, 3},
       .mask = Mask::kKeep,
       .mask_shape = {2, 2, 5, 5}},
      {.name = "mask_keep_shared", .mask = Mask::kKeep, .mask_shape = {5, 5}},
      {.name = "mask_keep_per_key", .mask = Mask::kKeep, .mask_shape = {2, 1, 1, 5}},
      {.name = "mask_keep_per_query", .mask = Mask::kKeep, .mask_shape = {2, 1, 5, 1}},
      {.name = "mask_add", .metric = {2, 2, 1, 3}, .mask = Mask::kAdd, .mask_shape = {2, 2, 5, 5}},
      {.name = "mask_add_shared", .mask = Mask::kAdd, .mask_shape = {2, 1, 5, 5}},
      {.name = "mask_add_causal",
       .is_causal = true,
       .mask = Mask::kAdd,
       .mask_shape = {1, 2, 1, 5}},
      {.name = "lengths", .metric = {2, 2, 1, 3}, .key_lengths = {3, 5}},
      {.name = "lengths_causal", .metric = {2, 2, 5, 3}, .is_causal = true, .key_lengths = {4, 0}},
      {.name = "lengths_cross", .N = 4, .M = 6, .key_lengths = {6, 2}},
      {.name = "dropout", .metric = {2, 2, 1, 3}, .dropout_p = 0.3},
      {.name = "dropout_causal", .metric = {2, 2, 5, 3}, .is_causal = true, .dropout_p = 0.5},
      {.name = "everything",
       .H = 4,
       .Hk = 2,
       .N = 4,
       .M = 6,
       .metric = {2, 4, 4, 3},
       .is_causal = true,
       .scale = 0.7,
       .mask = Mask::kAdd,
       .mask_shape = {2, 1, 4, 6},
       .key_lengths = {5, 6},
       .dropout_p = 0.2},
      {.name = "one_of_each", .B = 1, .H = 1, .Hk = 1, .N = 1, .M = 1, .D = 1, .Dv = 1},
      {.name = "no_queries", .N = 0, .metric = {2, 2, 1, 3}},
      {.name = "no_keys", .M = 0, .metric = {2, 2, 1, 3}},
      {.name = "no_batch", .B = 0, .metric = {1, 1, 1, 3}},
      {.name = "no_heads", .H = 0, .Hk = 0},
      {.name = "no_width", .D = 0},
      {.name = "no_value_width", .Dv = 0},
      {.name = "wider_than_a_vector", .N = 19, .M = 23, .D = 17, .Dv = 9, .metric = {2, 2, 19, 17}},
  };
}

AttentionData make_data(const AttentionCase& c, at::ScalarType type) {
  at::Generator generator = at::make_generator<at::CPUGeneratorImpl>(20241210);
  const auto options = torch::TensorOptions(torch::kDouble);
  const auto normal = [&](at::IntArrayRef sizes) {
    return torch::randn(sizes, generator, options).to(type);
  };
  AttentionData data{.q = normal({c.B, c.H, c.N, c.D}),
                     .k = normal({c.B, c.Hk, c.M, c.D}),
                     .v = normal({c.B, c.Hk, c.M, c.Dv})};
  if (!c.metric.empty()) data.metric = torch::rand(c.metric, generator, options).to(type);
  if (c.mask == Mask::kKeep) data.options.attn_mask = normal(c.mask_shape) > -0.5;
  if (c.mask == Mask::kAdd) {
    const at::Tensor mask = normal(c.mask_shape);
    data.options.attn_mask =
        torch::where(mask > -1, mask, -std::numeric_limits<double>::infinity()).to(type);
  }
  if (!c.key_lengths.empty()) data.options.key_lengths = torch::tensor(c.key_lengths, torch::kLong);
  data.options.is_causal = c.is_causal;
  data.options.scale = c.scale;
  data.options.dropout_p = c.dropout_p;
  return data;
}

ops::AttentionOptions AttentionData::fresh_options() const {
  ops::AttentionOptions fresh = options;
  fresh.generator = at::make_generator<at::CPUGeneratorImpl>(7);
  return fresh;
}

AttentionData AttentionData::to(at::ScalarType type) const {
  AttentionData other = *this;
  const auto convert = [&](std::optional<at::Tensor>& t) {
    if (t && t->is_floating_point()) t = t->to(type);
  };
  other.q = q.to(type);
  other.k = k.to(type);
  other.v = v.to(type);
  convert(other.metric);
  convert(other.options.attn_mask);
  return other;
}

double max_difference(const at::Tensor& a, const at::Tensor& b) {
  if (a.sizes() != b.sizes()) return std::numeric_limits<double>::infinity();
  if (a.numel() == 0) return 0.0;
  const at::Tensor x = a.to(torch::kDouble), y = b.to(torch::kDouble);
  const at::Tensor difference = torch::where(x == y, 0.0, (x - y).abs());
  return torch::where(difference.isnan(), std::numeric_limits<double>::infinity(), difference)
      .max()
      .item<double>();
}

AttentionRun run(AttentionFunction function, const AttentionData& data) {
  std::vector<at::Tensor> inputs{data.q, data.k, data.v};
  if (data.metric) inputs.push_back(*data.metric);
  for (at::Tensor& input : inputs) input = input.detach().set_requires_grad(true);
  const std::optional<at::Tensor> metric =
      data.metric ? std::optional(inputs[3]) : std::optional<at::Tensor>();
  auto [out, lse] = function(inputs[0], inputs[1], inputs[2], metric, data.fresh_options());
  const at::Tensor finite_lse = torch::where(lse.isfinite(), lse, 0.0);
  std::vector<at::Tensor> gradients = torch::autograd::grad(
      {out.sin().sum() + finite_lse.cos().sum()}, inputs, {}, {}, false, /*allow_unused=*/true);
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!gradients[i].defined()) gradients[i] = torch::zeros_like(inputs[i]);
  }
  return {out.detach(), lse.detach(), gradients};
}

}  // namespace elliptical::support
