// SPDX-License-Identifier: MIT
//
// Gradients of attention by finite differences: the composite path in double for every option. The
// fused path is then compared with it in attention_paths_test.cpp.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "elliptical/ops/attention.h"
#include "tests/support/attention_cases.h"
#include "tests/support/attention_data.h"
#include "tests/support/gradcheck.h"

namespace elliptical {
namespace {

using support::AttentionCase;
using support::AttentionData;

class AttentionGradient : public ::testing::TestWithParam<AttentionCase> {};

TEST_P(AttentionGradient, K7MatchesFiniteDifferences) {
  const AttentionData data = support::make_data(GetParam(), torch::kDouble);
  std::vector<at::Tensor> inputs{data.q, data.k, data.v};
  if (data.metric) inputs.push_back(*data.metric);
  const auto function = [&](const std::vector<at::Tensor>& x) -> std::vector<at::Tensor> {
    auto [out, lse] = ops::attention_with_lse(
        x[0], x[1], x[2], x.size() > 3 ? std::optional(x[3]) : std::nullopt, data.fresh_options());
    return {out, torch::where(lse.isfinite(), lse, 0.0)};
  };
  EXPECT_TRUE(support::gradients_match(function, inputs));
}

std::vector<AttentionCase> small_cases() {
  std::vector<AttentionCase> cases = support::attention_cases();
  std::erase_if(cases, [](const AttentionCase& c) { return c.sizes.N * c.sizes.D > 100; });
  return cases;
}

INSTANTIATE_TEST_SUITE_P(Cases,
                         AttentionGradient,
                         ::testing::ValuesIn(small_cases()),
                         [](const auto& test) { return test.param.name; });

TEST(AttentionGradient, OfAnAdditiveMask) {
  const AttentionData data = support::make_data({.is_causal = true}, torch::kDouble);
  const auto function = [&](const std::vector<at::Tensor>& x) -> std::vector<at::Tensor> {
    return {ops::attention(data.q, data.k, data.v, {}, {.is_causal = true, .attn_mask = x[0]})};
  };
  EXPECT_TRUE(support::gradients_match(function, {torch::randn({2, 1, 5, 5}, torch::kDouble)}));
}

TEST(AttentionGradient, OfTheGradientThroughTheCompositePath) {
  const AttentionData data =
      support::make_data({.sizes = {2, 2, 2, 2, 3, 2, 2}, .metric = "111D"}, torch::kDouble);
  const auto gradient = [](const std::vector<at::Tensor>& x) {
    const torch::AutoGradMode enabled(true);
    std::vector<at::Tensor> leaves;
    for (const at::Tensor& t : x)
      leaves.push_back(t.requires_grad() ? t : t.detach().requires_grad_());
    const at::Tensor out = ops::attention(leaves[0], leaves[1], leaves[2], leaves[3]);
    return torch::autograd::grad({out.sin().sum()}, leaves, {}, true, /*create_graph=*/true);
  };
  EXPECT_TRUE(support::gradients_match(gradient, {data.q, data.k, data.v, *data.metric}));
}

TEST(AttentionGradient, OfTheGradientIsRefusedByTheFusedPath) {
  const AttentionData data = support::make_data({});
  const at::Tensor q = data.q.requires_grad_();
  const at::Tensor out = ops::attention(q, data.k, data.v);
  const at::Tensor dq = torch::autograd::grad({out.sum()}, {q}, {}, true, /*create_graph=*/true)[0];
  try {
    torch::autograd::grad({dq.sum()}, {q});
    FAIL() << "a second derivative was given";
  } catch (const c10::NotImplementedError& error) {
    EXPECT_STREQ(error.what_without_backtrace(),
                 "attention: the fused path has no second derivative (set "
                 "ELLIPTICAL_ATTENTION=composite in the environment, or use double, to take the "
                 "composite path, which has)");
  }
}

}  // namespace
}  // namespace elliptical
