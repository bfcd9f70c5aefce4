// SPDX-License-Identifier: MIT
#include "tests/support/attention_data.h"

#include <ATen/CPUGeneratorImpl.h>
#include <torch/torch.h>

#include <limits>

namespace elliptical::support {

AttentionData make_data(const AttentionCase& c, at::ScalarType type) {
  at::Generator generator = at::make_generator<at::CPUGeneratorImpl>(c.seed);
  const auto options = torch::TensorOptions(torch::kDouble);
  const auto& [B, H, Hk, N, M, D, Dv] = c.sizes;
  const auto normal = [&](at::IntArrayRef sizes) {
    return torch::randn(sizes, generator, options);
  };
  AttentionData data{.q = (c.spread * normal({B, H, N, D})).to(type),
                     .k = (c.spread * normal({B, Hk, M, D})).to(type),
                     .v = normal({B, Hk, M, Dv}).to(type)};
  if (!c.metric.empty())
    data.metric = torch::rand(c.shape_of(c.metric), generator, options).to(type);
  TORCH_CHECK(c.mask_keep.empty() || c.mask_add.empty(), "a call has one mask, see ", c.describe());
  if (!c.mask_keep.empty()) data.options.attn_mask = normal(c.shape_of(c.mask_keep)) > -0.5;
  if (!c.mask_add.empty()) {
    const at::Tensor mask = normal(c.shape_of(c.mask_add));
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
