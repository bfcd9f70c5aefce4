// SPDX-License-Identifier: MIT
//
// The fused layers under forward mode: their kernels have no rule for it, and a kernel that runs
// all the same would give a derivative of 0 without a word. What comes out must be the derivative
// that the kernels' own backward has.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "elliptical/ops/adam.h"
#include "elliptical/ops/adaptive_softmax.h"
#include "elliptical/ops/dropout.h"
#include "elliptical/ops/embedding.h"
#include "elliptical/ops/feed_forward.h"
#include "elliptical/ops/fourier_attention.h"
#include "elliptical/ops/gelu_feed_forward.h"
#include "elliptical/ops/linear.h"
#include "elliptical/ops/metric.h"
#include "elliptical/ops/qkv_attention.h"
#include "elliptical/ops/residual_norm.h"
#include "tests/support/forward_mode.h"
#include "tests/support/layer_cases.h"

namespace elliptical::forward_mode_test {
namespace {

using support::Tensors;

constexpr int64_t B = 2, H = 2, N = 40, D = 4, C = H * D, F = 12, V = 9;
constexpr ops::ElementDropout kDropout{.p = 0.3, .seed = 5};

struct ForwardCase {
  const char* name;
  support::LayerFunction function;
  std::vector<std::vector<int64_t>> shapes;  ///< of the inputs
};

/// 80 rows: enough for the kernels that leave few rows to torch.
std::vector<ForwardCase> forward_cases() {
  const std::vector<int64_t> rows = {B, N, C}, heads = {B, H, N, D};
  const auto words = [](std::vector<int64_t> shape) {
    return torch::arange(torch::tensor(shape).prod().item<int64_t>()).remainder(V).view(shape);
  };
  const auto both = [](const ops::NormedSum& sums) { return at::cat({sums.sum, sums.normed}); };
  const auto qkv = [](const Tensors& t, std::optional<int64_t> num_queries) {
    return ops::qkv_attention(ops::split_heads(t[0], H), t[1].sigmoid(), {.is_causal = true},
                              num_queries);
  };
  return {
      {"linear",
       [](const Tensors& t) { return ops::linear(t[0], t[1], t[2]); },
       {rows, {F, C}, {F}}},
      {"element_dropout",
       [](const Tensors& t) { return ops::element_dropout(t[0], kDropout); },
       {rows}},
      {"bias_relu_dropout",
       [](const Tensors& t) { return ops::bias_relu_dropout(t[0], t[1], kDropout); },
       {rows, {C}}},
      {"feed_forward",
       [](const Tensors& t) { return ops::feed_forward(t[0], {t[1], t[2], t[3]}, kDropout); },
       {rows, {F, C}, {F}, {C, F}}},
      {"gelu_feed_forward",
       [](const Tensors& t) { return ops::gelu_feed_forward(t[0], {t[1], t[2], t[3], t[4]}); },
       {rows, {F, C}, {F}, {C, F}, {C}}},
      {"normed_feed_forward",
       [=](const Tensors& t) {
         return both(ops::normed_feed_forward(t[0], t[1], {t[2], t[3], 1e-5},
                                              {t[4], t[5], t[6], t[7]}, {t[8], t[9], 1e-5}));
       },
       {rows, rows, {C}, {C}, {F, C}, {F}, {C, F}, {C}, {C}, {C}}},
      {"residual_norm",
       [=](const Tensors& t) {
         return both(ops::residual_norm(t[0], t[1], torch::tensor({0.0F, 1.25F}).to(t[0]),
                                        {t[2], t[3], 1e-5}));
       },
       {rows, rows, {C}, {C}}},
      {"residual_dropout_norm",
       [](const Tensors& t) {
         return ops::residual_dropout_norm(t[0], t[1], t[2], {t[3], t[4], 1e-5}, kDropout);
       },
       {rows, {C}, rows, {C}, {C}}},
      {"embed",
       [=](const Tensors& t) {
         const at::Tensor places = torch::linspace(-1, 1, N * C).view({N, C}).to(t[0]);
         return ops::embed(t[0], words({B, N}), places, {.scale = 3.0, .dropout = kDropout});
       },
       {{V, C}}},
      {"adaptive_nll",
       [=](const Tensors& t) {
         return ops::adaptive_nll(t[0], {t[1], t[2], t[3], t[4], {4}}, words({N}));
       },
       {{N, C}, {V, C}, {V}, {1, C}, {1}}},
      {"qkv_attention",
       [=](const Tensors& t) { return qkv(t, {}); },
       {{B, N, 3 * C}, {B, H, 1, D}}},
      {"qkv_attention of the first queries",
       [=](const Tensors& t) { return qkv(t, 7); },
       {{B, N, 3 * C}, {B, H, 1, D}}},
      {"fourier_attention",
       [](const Tensors& t) {
         return ops::fourier_attention(t[0], t[1], t[2], {.is_causal = true, .epsilon = 1e-3});
       },
       {heads, heads, heads}},
      {"metric",
       [](const Tensors& t) {
         return ops::metric({.v = t[0], .v_prev = t[1]}, {.differentiable = true});
       },
       {heads, heads}},
  };
}

class ForwardMode : public ::testing::TestWithParam<ForwardCase> {
 protected:
  ForwardMode() {
    torch::manual_seed(2);
    for (const auto& shape : GetParam().shapes) {
      inputs_.push_back(torch::randn(shape) / 2);
      tangents_.push_back(torch::randn(shape));
    }
  }
  Tensors inputs_, tangents_;
};

/// <u, J t> both ways. 1e-4: sums of some thousand float32 products of order one, relative to the
/// sum of their sizes.
TEST_P(ForwardMode, HasTheDerivativeOfTheKernelsBackward) {
  const Tensors fused = support::values_and_gradients(GetParam().function, inputs_);
  const auto [value, tangent] =
      support::forward_derivative(GetParam().function, inputs_, tangents_);
  ASSERT_TRUE(tangent.defined()) << "a derivative of 0 without a word";
  EXPECT_TRUE(torch::allclose(value, fused[0], 2e-5, 2e-5));
  const double forward = (tangent * support::direction(tangent)).sum().item<double>();
  double reverse = 0, size = 0;
  for (size_t i = 0; i < tangents_.size(); ++i) {
    const at::Tensor products = (fused[i + 1] * tangents_[i]).to(torch::kDouble);
    reverse += products.sum().item<double>();
    size += products.abs().sum().item<double>();
  }
  EXPECT_GT(size, 1e-2);
  EXPECT_NEAR(forward, reverse, 1e-4 * size);
}

/// Each input alone: its derivative may not depend on which others have one.
TEST_P(ForwardMode, HasTheDerivativeByEachInputAlone) {
  const Tensors fused = support::values_and_gradients(GetParam().function, inputs_);
  for (size_t i = 0; i < inputs_.size(); ++i) {
    Tensors alone(inputs_.size());
    alone[i] = tangents_[i];
    const at::Tensor tangent =
        support::forward_derivative(GetParam().function, inputs_, alone).tangent;
    ASSERT_TRUE(tangent.defined()) << "input " << i;
    const double forward = (tangent * support::direction(tangent)).sum().item<double>();
    const at::Tensor products = (fused[i + 1] * tangents_[i]).to(torch::kDouble);
    EXPECT_NEAR(forward, products.sum().item<double>(),
                1e-4 * std::max(1.0, products.abs().sum().item<double>()))
        << "input " << i;
  }
}

/// Else the tests above would compare torch's operations with themselves.
TEST_P(ForwardMode, TheKernelRunsWithoutIt) {
  if (std::string_view(GetParam().name) == "metric") GTEST_SKIP() << "has a second derivative, 0";
  Tensors own;
  for (const at::Tensor& input : inputs_) own.push_back(input.clone().requires_grad_());
  const at::Tensor value = GetParam().function(own);
  const at::Tensor loss = (value * support::direction(value)).sum();
  EXPECT_THROW(torch::autograd::grad({loss}, own, {}, {}, /*create_graph=*/true, true),
               c10::NotImplementedError);
}

INSTANTIATE_TEST_SUITE_P(Layers,
                         ForwardMode,
                         ::testing::ValuesIn(forward_cases()),
                         [](const auto& test) {
                           std::string name = test.param.name;
                           std::replace(name.begin(), name.end(), ' ', '_');
                           return name;
                         });

TEST(ForwardModeOfAdam, IsRefused) {
  const auto step = [](const Tensors& t) {
    const at::Tensor first = torch::zeros({3}), second = torch::zeros({3});
    ops::adam_step({t[0]}, {torch::ones({3})}, {first}, {second}, {.step = 1});
    return t[0];
  };
  EXPECT_THROW(support::forward_derivative(step, {torch::ones({3})}, {torch::ones({3})}),
               c10::NotImplementedError);
}

}  // namespace
}  // namespace elliptical::forward_mode_test
