// SPDX-License-Identifier: MIT
#include "tests/support/attention_stack.h"

#include <torch/torch.h>

#include "elliptical/nn/initialize.h"

namespace elliptical::support {

AttentionStack::AttentionStack(const ChosenOptions& options, nn::AttentionShape shape)
    : AttentionStack([&](const auto& one) { return nn::make_attention(options, one); }, shape) {}

AttentionStack::AttentionStack(const AttentionVariant& variant,
                               nn::AttentionShape shape,
                               const std::vector<std::string>& more)
    : AttentionStack(
          [options = variant.options(more), &entry = variant.entry()](const auto& one) {
            return nn::make_attention(entry, options.get<Options>(), one);
          },
          shape) {}

AttentionStack::AttentionStack(const Make& make, nn::AttentionShape shape)
    : is_causal(shape.is_causal) {
  const torch::NoGradGuard no_grad;
  shape.num_layers = 3;
  for (int64_t layer = 0; layer < shape.num_layers; ++layer) {
    shape.layer = layer;
    layers.push_back(make(shape));
    for (auto& item : layers.back()->named_parameters()) {
      if (item.value().dim() != 2) continue;
      nn::fill_normal(item.value(), 0.0, 0.3, RandomKey(1).derive(layer).derive(item.key()));
    }
  }
}

at::Tensor AttentionStack::forward(at::Tensor x, nn::Pass& pass) const {
  pass.begin_layers();
  pass.is_causal = is_causal;
  for (size_t layer = 0; layer < layers.size(); ++layer) {
    pass.layer = static_cast<int64_t>(layer);
    x = x + layers[layer]->forward(x, pass);
  }
  return x;
}

at::Tensor AttentionStack::forward(const at::Tensor& x) const {
  nn::Pass pass;
  return forward(x, pass);
}

void AttentionStack::to(at::ScalarType type) const {
  for (const auto& layer : layers) layer->to(type);
}

std::vector<at::Tensor> AttentionStack::parameters() const {
  std::vector<at::Tensor> all;
  for (const auto& layer : layers) {
    for (const at::Tensor& parameter : layer->parameters()) all.push_back(parameter);
  }
  return all;
}

at::Tensor wave(at::IntArrayRef sizes, double frequency) {
  const int64_t count = c10::multiply_integers(sizes);
  return (torch::arange(1, count + 1, torch::kDouble) * frequency)
      .sin()
      .view(sizes)
      .to(torch::kFloat);
}

}  // namespace elliptical::support
