// SPDX-License-Identifier: MIT
//
// The fused layers against their composite forms in double, on every instruction set: values and
// gradients at many sizes, the same mask, the same bits for any number of threads, NaN, messages.
#include <ATen/Parallel.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <functional>

#include "elliptical/ops/dropout.h"
#include "elliptical/ops/embedding.h"
#include "elliptical/ops/feed_forward.h"
#include "elliptical/ops/residual_norm.h"
#include "tests/kernels/targets.h"
#include "tests/support/layer_cases.h"
#include "tests/support/torch_refusal.h"

namespace elliptical {
namespace {

using kernels::test::ForcedTarget;
using kernels::test::targets_under_test;
using support::LayerFunction;
using support::refusal;
using support::Tensors;

struct LayerCase {
  const char* name;
  LayerFunction fused, composite;
  std::function<Tensors(int64_t rows, int64_t C)> inputs;
};

std::vector<LayerCase> cases(ops::ElementDropout dropout) {
  const auto matrix = [](int64_t rows, int64_t C) { return torch::randn({rows, C}); };
  const auto vector = [](int64_t C) { return torch::randn({C}); };
  const auto tokens = [](int64_t rows) {
    return torch::arange(rows).mul(7).remainder(5).view({1, rows});
  };
  const auto positions = [](const at::Tensor& table, int64_t rows) {
    return torch::linspace(-1, 1, rows * table.size(1), table.options().requires_grad(false))
        .view({rows, table.size(1)});
  };
  return {
      {"bias_relu_dropout",
       [=](const Tensors& t) { return ops::bias_relu_dropout(t[0], t[1], dropout); },
       [=](const Tensors& t) { return ops::bias_relu_dropout_composite(t[0], t[1], dropout); },
       [=](int64_t rows, int64_t C) { return Tensors{matrix(rows, C), vector(C)}; }},
      {"residual_dropout_norm",
       [=](const Tensors& t) {
         return ops::residual_dropout_norm(t[0], t[1], t[2], {t[3], t[4], 1e-5}, dropout);
       },
       [=](const Tensors& t) {
         return ops::residual_dropout_norm_composite(t[0], t[1], t[2], {t[3], t[4], 1e-5}, dropout);
       },
       [=](int64_t rows, int64_t C) {
         return Tensors{matrix(rows, C), vector(C), matrix(rows, C), vector(C), vector(C)};
       }},
      {"residual_dropout_norm without bias",
       [=](const Tensors& t) {
         return ops::residual_dropout_norm(t[0], {}, t[1], {t[2], t[3], 1e-2}, dropout);
       },
       [=](const Tensors& t) {
         return ops::residual_dropout_norm_composite(t[0], {}, t[1], {t[2], t[3], 1e-2}, dropout);
       },
       [=](int64_t rows, int64_t C) {
         return Tensors{matrix(rows, C), matrix(rows, C), vector(C), vector(C)};
       }},
      {"feed_forward",
       [=](const Tensors& t) { return ops::feed_forward(t[0], {t[1], t[2], t[3]}, dropout); },
       [=](const Tensors& t) {
         return ops::feed_forward_composite(t[0], {t[1], t[2], t[3]}, dropout);
       },
       [=](int64_t rows, int64_t C) {
         return Tensors{matrix(rows, C), matrix(2 * C + 1, C), vector(2 * C + 1),
                        matrix(C, 2 * C + 1)};
       }},
      {"embed",
       [=](const Tensors& t) {
         const int64_t rows = t[1].numel();
         return ops::embed(t[0], tokens(rows), positions(t[0], rows),
                           {.scale = 1.7, .dropout = dropout});
       },
       [=](const Tensors& t) {
         const int64_t rows = t[1].numel();
         return ops::embed_composite(t[0], tokens(rows), positions(t[0], rows),
                                     {.scale = 1.7, .dropout = dropout});
       },
       // The second one only says how many tokens there are.
       [=](int64_t rows, int64_t C) { return Tensors{matrix(5, C), torch::zeros({rows})}; }},
      {"element_dropout", [=](const Tensors& t) { return ops::element_dropout(t[0], dropout); },
       [=](const Tensors& t) { return ops::element_dropout_composite(t[0], dropout); },
       [=](int64_t rows, int64_t C) { return Tensors{matrix(rows, C)}; }},
  };
}

constexpr ops::ElementDropout kDropout{.p = 0.3, .seed = (int64_t{5} << 40) + 3};

/// Nothing, one, the lanes of every target +- 1, primes, a whole block of dropout +- 1.
constexpr std::pair<int64_t, int64_t> kSizes[] = {
    {0, 8},  {1, 1},   {1, 3},  {67, 4}, {5, 5},   {67, 7}, {5, 8},   {33, 9},
    {3, 15}, {67, 16}, {5, 17}, {2, 31}, {33, 61}, {3, 64}, {67, 65}, {33, 130}};

TEST(FusedLayers, MatchTheCompositeInDouble) {
  for (const std::string& target : targets_under_test()) {
    const ForcedTarget forced(target);
    torch::manual_seed(11);
    for (const ops::ElementDropout dropout : {kDropout, ops::ElementDropout{}}) {
      for (const LayerCase& layer : cases(dropout)) {
        for (const auto& [rows, C] : kSizes) {
          // A norm over one or two channels has a singular gradient.
          if (std::string(layer.name).starts_with("residual") && C < 3) continue;
          EXPECT_TRUE(support::layers_match(layer.fused, layer.composite, layer.inputs(rows, C)))
              << layer.name << ", rows " << rows << ", C " << C << ", p " << dropout.p << ", "
              << target;
        }
      }
    }
  }
}

TEST(FusedLayers, ThreadsDoNotChangeABit) {
  for (const LayerCase& layer : cases(kDropout)) {
    if (std::string(layer.name) == "feed_forward") continue;  // its products are torch's
    torch::manual_seed(12);
    support::expect_threads_change_no_bit(layer.fused, layer.inputs(3001, 67), layer.name);
  }
}

TEST(FusedLayers, ChunksOfTheFeedForwardDrawOneMask) {
  // 700 rows x 4096 are three chunks.
  torch::manual_seed(13);
  const Tensors inputs{torch::randn({700, 4}), torch::randn({4096, 4}), torch::randn({4096}),
                       torch::randn({4, 4096}) / 64};
  EXPECT_TRUE(support::layers_match(
      [](const Tensors& t) { return ops::feed_forward(t[0], {t[1], t[2], t[3]}, kDropout); },
      [](const Tensors& t) {
        return ops::feed_forward_composite(t[0], {t[1], t[2], t[3]}, kDropout);
      },
      inputs));
}

TEST(FusedLayers, StridedInputsAndMoreDimensions) {
  torch::manual_seed(14);
  const at::Tensor x = torch::randn({3, 5, 8}).transpose(0, 1),
                   bias = torch::randn({16}).slice(0, 0, 16, 2);
  EXPECT_TRUE(ops::bias_relu_dropout(x, bias, kDropout)
                  .allclose(ops::bias_relu_dropout_composite(x, bias, kDropout)));
  const at::Tensor up = torch::randn({8, 6}).t(), down = torch::randn({6, 8}).t();
  const at::Tensor up_bias = torch::randn({6});
  EXPECT_TRUE(
      ops::feed_forward(x, {up, up_bias, down}, kDropout)
          .allclose(ops::feed_forward_composite(x, {up, up_bias, down}, kDropout), 1e-4, 1e-5));
}

TEST(FusedLayers, NanPassesThrough) {
  for (const LayerCase& layer : cases({})) {
    Tensors inputs = layer.inputs(5, 19);
    inputs[0].fill_(std::numeric_limits<float>::quiet_NaN());
    EXPECT_TRUE(layer.fused(inputs).isnan().any().item<bool>()) << layer.name;
  }
}

TEST(FusedLayers, SparseGradientOfTheTableIsTheDenseOne) {
  const at::Tensor table = torch::randn({9, 6}).requires_grad_();
  const at::Tensor tokens = torch::tensor({{1, 3, 1}, {0, 8, 3}}, torch::kLong);
  const auto gradient = [&](bool sparse) {
    const at::Tensor y = ops::embed(table, tokens, torch::zeros({3, 6}),
                                    {.scale = 2.0, .dropout = kDropout, .sparse_gradient = sparse});
    return torch::autograd::grad({y.square().sum()}, {table})[0];
  };
  EXPECT_TRUE(gradient(true).is_sparse());
  EXPECT_TRUE(gradient(true).to_dense().allclose(gradient(false)));
}

TEST(FusedLayers, ElementDropoutKeepsTheShareAskedFor) {
  const at::Tensor kept = ops::element_dropout(torch::ones({100000}), {.p = 0.1, .seed = 3}) > 0;
  EXPECT_NEAR(kept.to(torch::kDouble).mean().item<double>(), 0.9, 0.005);  // 5 sigma
  EXPECT_FALSE(kept.equal(ops::element_dropout(torch::ones({100000}), {.p = 0.1, .seed = 4}) > 0));
}

TEST(FusedLayers, RefuseASecondDerivative) {
  const at::Tensor x = torch::randn({4, 8}).requires_grad_(), bias = torch::zeros({8});
  const at::Tensor y = ops::bias_relu_dropout(x, bias, {}).sum();
  EXPECT_THROW(torch::autograd::grad({y}, {x}, {}, true, /*create_graph=*/true),
               c10::NotImplementedError);
}

TEST(FusedLayers, MessagesNameTheArgument) {
  const at::Tensor x = torch::zeros({2, 3}), row = torch::zeros({3}), long_row = torch::zeros({4});
  EXPECT_EQ(refusal([&] { ops::bias_relu_dropout(x, long_row, {}); }),
            "bias_relu_dropout: bias must be (C) = (3), got (4)");
  EXPECT_EQ(refusal([&] { ops::bias_relu_dropout(x, row, {.p = 1.0}); }),
            "bias_relu_dropout: dropout.p must be in [0, 1), got 1");
  EXPECT_EQ(refusal([&] { ops::bias_relu_dropout(x, row.to(torch::kDouble), {}); }),
            "bias_relu_dropout: bias must have x's dtype Float, got Double");
  EXPECT_EQ(refusal([&] { ops::residual_dropout_norm(x, {}, x.t(), {row, row, 1e-5}, {}); }),
            "residual_dropout_norm: residual must have x's shape (2, 3), got (3, 2)");
  EXPECT_EQ(refusal([&] { ops::residual_dropout_norm(x, {}, x, {long_row, row, 1e-5}, {}); }),
            "residual_dropout_norm: weight must be (C) = (3), got (4)");
  EXPECT_EQ(refusal([&] { ops::residual_dropout_norm(x, {}, x, {row, row, -1.0}, {}); }),
            "residual_dropout_norm: eps must be finite and >= 0, got -1");
  EXPECT_EQ(refusal([&] { ops::feed_forward(x, {x, torch::zeros({2}), x}, {}); }),
            "feed_forward: down must be (C, F) = (3, 2), got (2, 3)");
  EXPECT_EQ(refusal([&] { ops::feed_forward(x, {x.t(), row, x}, {}); }),
            "feed_forward: up must be (F, C) = (F, 3), got (3, 2)");
  const at::Tensor tokens = torch::tensor({{0, 2}}, torch::kLong), positions = torch::zeros({2, 3});
  EXPECT_EQ(refusal([&] { ops::embed(x, tokens, positions); }),
            "embed: tokens must be in [0, V) = [0, 2), got 2 at element 1");
  EXPECT_EQ(refusal([&] { ops::embed(x, tokens, x.t()); }),
            "embed: positions must be (N, C) = (2, 3), got (3, 2)");
  EXPECT_EQ(refusal([&] { ops::element_dropout(tokens, {}); }),
            "element_dropout: x must have a floating point dtype, got Long");
}

}  // namespace
}  // namespace elliptical
