// SPDX-License-Identifier: MIT
//
// The layers of a pre-norm block, linear ones among them, against their composite forms in double,
// on every instruction set: values and gradients at many sizes, threads, chunks, NaN, messages.
#include "elliptical/ops/gelu_feed_forward.h"

#include <ATen/Parallel.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "elliptical/ops/linear.h"
#include "tests/kernels/targets.h"
#include "tests/support/gradcheck.h"
#include "tests/support/layer_cases.h"
#include "tests/support/torch_refusal.h"

namespace elliptical::pre_norm_layers_test {
namespace {

using kernels::test::ForcedTarget;
using kernels::test::targets_under_test;
using support::LayerFunction;
using support::refusal;
using support::Tensors;

/// Both results side by side, so that gradients come from both.
at::Tensor joined(const ops::NormedSum& result) { return at::cat({result.sum, result.normed}, -1); }

/// 0 for the first sample, 2 for the next, 1 / 2, ...
at::Tensor some_factors(const at::Tensor& x) {
  return torch::arange(x.size(0)).remainder(3).mul(1.5).remainder(2.5).to(x.scalar_type());
}

struct LayerCase {
  const char* name;
  LayerFunction fused, composite;
  std::function<Tensors(int64_t samples, int64_t C)> inputs;
};

std::vector<LayerCase> cases() {
  // Samples of 29 rows: three of them are enough for products that pack their weights.
  const auto rows = [](int64_t samples, int64_t C) { return torch::randn({samples, 29, C}); };
  const auto norm_inputs = [=](int64_t samples, int64_t C) {
    return Tensors{rows(samples, C), rows(samples, C), torch::randn({C}), torch::randn({C})};
  };
  return {
      {"residual_norm",
       [](const Tensors& t) {
         return joined(ops::residual_norm(t[0], t[1], {}, {t[2], t[3], 1e-6}));
       },
       [](const Tensors& t) {
         return joined(ops::residual_norm_composite(t[0], t[1], {}, {t[2], t[3], 1e-6}));
       },
       norm_inputs},
      {"residual_norm with factors",
       [](const Tensors& t) {
         return joined(ops::residual_norm(t[0], t[1], some_factors(t[0]), {t[2], t[3], 1e-6}));
       },
       [](const Tensors& t) {
         return joined(
             ops::residual_norm_composite(t[0], t[1], some_factors(t[0]), {t[2], t[3], 1e-6}));
       },
       norm_inputs},
      {"residual_norm, sum unused",
       [](const Tensors& t) {
         return ops::residual_norm(t[0], t[1], {}, {t[2], t[3], 1e-6}).normed;
       },
       [](const Tensors& t) {
         return ops::residual_norm_composite(t[0], t[1], {}, {t[2], t[3], 1e-6}).normed;
       },
       norm_inputs},
      {"residual_norm, norm unused",
       [](const Tensors& t) {
         return ops::residual_norm(t[0], t[1], some_factors(t[0]), {t[2], t[3], 1e-6}).sum;
       },
       [](const Tensors& t) {
         return ops::residual_norm_composite(t[0], t[1], some_factors(t[0]), {t[2], t[3], 1e-6})
             .sum;
       },
       norm_inputs},
      {"linear", [](const Tensors& t) { return ops::linear(t[0], t[1], t[2]); },
       [](const Tensors& t) { return at::linear(t[0], t[1], t[2]); },
       [=](int64_t samples, int64_t C) {
         return Tensors{rows(samples, C), torch::randn({3 * C + 1, C}), torch::randn({3 * C + 1})};
       }},
      {"gelu_feed_forward",
       [](const Tensors& t) { return ops::gelu_feed_forward(t[0], {t[1], t[2], t[3], t[4]}); },
       [](const Tensors& t) {
         return ops::gelu_feed_forward_composite(t[0], {t[1], t[2], t[3], t[4]});
       },
       [=](int64_t samples, int64_t C) {
         const int64_t F = 2 * C + 1;
         return Tensors{rows(samples, C), torch::randn({F, C}), torch::randn({F}),
                        torch::randn({C, F}), torch::randn({C})};
       }},
  };
}

/// Nothing, one, the lanes of every target +- 1, primes.
constexpr std::pair<int64_t, int64_t> kSizes[] = {{0, 8},  {1, 3},  {23, 4}, {5, 5},
                                                  {23, 7}, {5, 8},  {11, 9}, {3, 15},
                                                  {7, 16}, {5, 17}, {3, 31}, {11, 130}};

TEST(PreNorm, MatchesTheCompositeInDouble) {
  for (const std::string& target : targets_under_test()) {
    const ForcedTarget forced(target);
    torch::manual_seed(21);
    for (const LayerCase& layer : cases()) {
      for (const auto& [samples, C] : kSizes) {
        EXPECT_TRUE(support::layers_match(layer.fused, layer.composite, layer.inputs(samples, C)))
            << layer.name << ", samples " << samples << ", C " << C << ", " << target;
      }
    }
  }
}

TEST(PreNorm, CompositeGradientsMatchDifferences) {
  torch::manual_seed(22);
  for (const LayerCase& layer : cases()) {
    Tensors inputs = layer.inputs(3, 4);
    for (at::Tensor& input : inputs) input = input.to(torch::kDouble);
    EXPECT_TRUE(support::gradients_match(
        [&](const Tensors& t) -> Tensors { return {layer.fused(t)}; }, inputs, 1e-5, 1e-6))
        << layer.name;
  }
}

TEST(PreNorm, FrozenParametersDoNotChangeTheGradientOfTheInput) {
  torch::manual_seed(26);
  for (const LayerCase& layer : cases()) {
    const Tensors drawn = layer.inputs(11, 17);
    const auto input_gradient = [&](bool is_frozen, bool asks_for_all) {
      Tensors leaves;
      for (const at::Tensor& t : drawn) leaves.push_back(t.detach().clone());
      for (size_t i = 0; i < leaves.size(); ++i) leaves[i].requires_grad_(i == 0 || !is_frozen);
      const at::Tensor out = layer.fused(leaves), weights = torch::linspace(-1, 1, out.numel());
      const at::Tensor sum = (out * weights.view(out.sizes())).sum();
      return torch::autograd::grad({sum}, asks_for_all ? leaves : Tensors{leaves[0]}, {}, {}, false,
                                   /*allow_unused=*/true)[0];
    };
    const at::Tensor expected = input_gradient(false, true);
    EXPECT_TRUE(torch::equal(input_gradient(true, false), expected)) << layer.name;
    EXPECT_TRUE(torch::equal(input_gradient(false, false), expected)) << layer.name;
  }
}

TEST(PreNorm, TheHalfBlockInOnePassHasTheBitsOfItsParts) {
  torch::manual_seed(27);
  for (const std::string& target : targets_under_test()) {
    const ForcedTarget forced(target);
    for (const auto& [samples, C] : kSizes) {
      const int64_t F = 2 * C + 1;
      const at::Tensor x = torch::randn({samples, 29, C}),
                       residual = torch::randn({samples, 29, C});
      const ops::NormWeights before{torch::randn({C}), torch::randn({C}), 1e-6},
          after{torch::randn({C}), torch::randn({C}), 1e-5};
      const ops::GeluFeedForwardWeights weights{torch::randn({F, C}), torch::randn({F}),
                                                torch::randn({C, F}), torch::randn({C})};
      const ops::NormedSum fused = ops::normed_feed_forward(x, residual, before, weights, after);
      before.weight.requires_grad_();  // one after the other
      const ops::NormedSum parts = ops::normed_feed_forward(x, residual, before, weights, after);
      EXPECT_FALSE(fused.sum.requires_grad());
      EXPECT_TRUE(fused.sum.equal(parts.sum) && fused.normed.equal(parts.normed))
          << "samples " << samples << ", C " << C << ", " << target;
    }
  }
}

TEST(PreNorm, GeluIsExactEverywhere) {
  // An identity around it; from where it is 0 to where it is x, steps of 1 / 512.
  const at::Tensor x = torch::arange(-20.0, 20.0, 1.0 / 512, torch::kFloat).unsqueeze(1);
  const at::Tensor one = torch::ones({1, 1}), zero = torch::zeros({1});
  const at::Tensor expected = at::gelu(x.to(torch::kDouble));
  for (const std::string& target : targets_under_test()) {
    const ForcedTarget forced(target);
    const at::Tensor error = (ops::gelu_feed_forward(x, {one, zero, one, zero}) - expected).abs();
    EXPECT_LE((error / x.abs().clamp_min(1.0)).max().item<double>(), 2e-7) << target;
    const at::Tensor leaf = x.clone().requires_grad_();
    ops::gelu_feed_forward(leaf, {one, zero, one, zero}).sum().backward();
    const at::Tensor exact = x.to(torch::kDouble).requires_grad_();
    at::gelu(exact).sum().backward();
    EXPECT_LE((leaf.grad() - exact.grad()).abs().max().item<double>(), 4e-7) << target;
  }
}

TEST(PreNorm, ChunksMakeOneLayer) {
  // 700 rows x 4096 are three chunks.
  torch::manual_seed(23);
  const Tensors inputs{torch::randn({700, 4}), torch::randn({4096, 4}), torch::randn({4096}),
                       torch::randn({4, 4096}) / 64, torch::randn({4})};
  const LayerCase layer = cases().back();
  EXPECT_TRUE(support::layers_match(layer.fused, layer.composite, inputs));
  const torch::NoGradGuard no_grad;  // where the hidden layer is not kept
  EXPECT_TRUE(torch::allclose(layer.fused(inputs), layer.composite(inputs), 1e-4, 1e-4));
}

TEST(PreNorm, ThreadsDoNotChangeABit) {
  for (const LayerCase& layer : cases()) {
    torch::manual_seed(24);
    support::expect_threads_change_no_bit(layer.fused, layer.inputs(101, 67), layer.name);
  }
}

TEST(PreNorm, TakesStridedInputs) {
  torch::manual_seed(25);
  const at::Tensor x = torch::randn({30, 5, 8}).transpose(0, 1),
                   residual = torch::randn({5, 33, 8}).narrow(1, 1, 30),
                   row = torch::randn({16}).slice(0, 0, 16, 2);
  EXPECT_TRUE(torch::allclose(
      joined(ops::residual_norm(x, residual, {}, {row, row, 1e-6})),
      joined(ops::residual_norm_composite(x, residual, {}, {row, row, 1e-6})), 1e-4, 1e-5));
  const at::Tensor up = torch::randn({8, 6}).t(), down = torch::randn({6, 8}).t(),
                   up_bias = torch::randn({6});
  EXPECT_TRUE(torch::allclose(ops::gelu_feed_forward(x, {up, up_bias, down, row}),
                              ops::gelu_feed_forward_composite(x, {up, up_bias, down, row}), 1e-4,
                              1e-5));
  // Neither stride of the weights is 1.
  const at::Tensor weight = torch::randn({12, 16}).slice(0, 0, 12, 2).slice(1, 0, 16, 2);
  EXPECT_TRUE(
      torch::allclose(ops::linear(x, weight, up_bias), at::linear(x, weight, up_bias), 1e-4, 1e-5));
}

TEST(PreNorm, FrozenParametersLeaveTheGradientOfTheInput) {
  torch::manual_seed(26);
  for (const LayerCase& layer : cases()) {
    const Tensors inputs = layer.inputs(5, 19);
    const auto gradient = [&](bool frozen) {
      Tensors leaves;
      for (const at::Tensor& input : inputs) {
        leaves.push_back(input.detach().clone().requires_grad_(leaves.empty() || !frozen));
      }
      layer.fused(leaves).sin().sum().backward();
      EXPECT_FALSE(frozen && leaves.back().grad().defined()) << layer.name;
      return leaves[0].grad();
    };
    EXPECT_TRUE(gradient(true).equal(gradient(false))) << layer.name;
  }
}

TEST(PreNorm, NanPassesThrough) {
  for (const LayerCase& layer : cases()) {
    Tensors inputs = layer.inputs(5, 19);
    inputs[0].fill_(std::numeric_limits<float>::quiet_NaN());
    EXPECT_TRUE(layer.fused(inputs).isnan().any().item<bool>()) << layer.name;
  }
}

TEST(PreNorm, RefusesASecondDerivative) {
  for (const LayerCase& layer : cases()) {
    Tensors inputs = layer.inputs(3, 8);
    inputs[0].requires_grad_();
    const at::Tensor y = layer.fused(inputs).sum();
    EXPECT_THROW(torch::autograd::grad({y}, {inputs[0]}, {}, true, /*create_graph=*/true),
                 c10::NotImplementedError)
        << layer.name;
  }
}

TEST(PreNorm, MessagesNameTheArgument) {
  const at::Tensor x = torch::zeros({2, 3}), row = torch::zeros({3}), long_row = torch::zeros({4});
  EXPECT_EQ(refusal([&] { ops::residual_norm(x, x.t(), {}, {row, row, 1e-6}); }),
            "residual_norm: residual must have x's shape (2, 3), got (3, 2)");
  EXPECT_EQ(refusal([&] { ops::residual_norm(x, x, row, {row, row, 1e-6}); }),
            "residual_norm: factors must be (B) = (2), got (3)");
  EXPECT_EQ(refusal([&] {
              ops::residual_norm(x, x, torch::ones({2}).requires_grad_(), {row, row, 1e-6});
            }),
            "residual_norm: factors must not require grad (they get no gradient)");
  EXPECT_EQ(refusal([&] { ops::residual_norm(x, x, {}, {long_row, row, 1e-6}); }),
            "residual_norm: weight must be (C) = (3), got (4)");
  EXPECT_EQ(refusal([&] { ops::residual_norm(x, x, {}, {row, row, -1.0}); }),
            "residual_norm: eps must be finite and >= 0, got -1");
  EXPECT_EQ(refusal([&] { ops::gelu_feed_forward(x, {x, torch::zeros({2}), x, row}); }),
            "gelu_feed_forward: down must be (C, F) = (3, 2), got (2, 3)");
  EXPECT_EQ(refusal([&] { ops::gelu_feed_forward(x, {x, torch::zeros({2}), x.t(), long_row}); }),
            "gelu_feed_forward: down_bias must be (C) = (3), got (4)");
}

}  // namespace
}  // namespace elliptical::pre_norm_layers_test
