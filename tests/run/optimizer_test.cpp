// SPDX-License-Identifier: MIT
#include "elliptical/run/optimizer.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

namespace elliptical::run {
namespace {

/// A layer and a token, and a loss that pulls at all of them.
struct Model : torch::nn::Module {
  Model() : layer(register_module("layer", torch::nn::Linear(3, 2))) {
    token = register_parameter("cls_token", at::ones({1, 1, 3}));
    const at::NoGradGuard no_grad;
    for (at::Tensor& parameter : parameters()) {
      parameter.copy_(at::arange(1, parameter.numel() + 1).reshape(parameter.sizes()) * 0.25);
    }
  }
  at::Tensor loss() { return (layer(token.flatten()) - 100).square().sum(); }
  torch::nn::Linear layer;
  at::Tensor token;
};

// The first step of Adam has the length of the learning rate in every coordinate, whatever the
// gradient: p (1 - rate decay) - rate sign(g).
TEST(Adam, MatricesDecayAndTheRestDoesNot) {
  constexpr double kRate = 0.05, kDecay = 0.5;
  for (const DecayRule rule : {DecayRule::kMatrices, DecayRule::kAll}) {
    Model model;
    const Model before;
    Adam optimizer(model, {.weight_decay = kDecay, .decay_rule = rule, .clip_norm = 0});
    optimizer.clear_gradients();
    model.loss().backward();
    optimizer.update(kRate, optimizer.gradient_norm(), 0);
    for (const auto& parameter : model.named_parameters()) {
      const bool decays = rule == DecayRule::kAll || parameter.key() == "layer.weight";
      const at::Tensor first = before.named_parameters()[parameter.key()].detach();
      const at::Tensor expected =
          first * (decays ? 1 - kRate * kDecay : 1) - kRate * parameter.value().grad().sign();
      // A few roundings of float of numbers around 1.
      EXPECT_TRUE(parameter.value().detach().allclose(expected, 0, 1e-6)) << parameter.key();
    }
  }
}

}  // namespace
}  // namespace elliptical::run
