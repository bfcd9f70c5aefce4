// SPDX-License-Identifier: MIT
//
// Attention on heads that one product made against attention on the same heads apart: the same
// bits, forward and backward, with every option, and with other readers of the heads beside it.
#include "elliptical/ops/qkv_attention.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include "tests/support/attention_cases.h"
#include "tests/support/attention_data.h"
#include "tests/support/error_message.h"

namespace elliptical::qkv_attention_test {
namespace {

using support::AttentionCase;
using support::AttentionData;
using test::error_message;

constexpr int64_t B = 2, H = 3, N = 19, D = 5;

at::Tensor qkv_input(at::ScalarType type = torch::kFloat) {
  torch::manual_seed(5);
  return torch::randn({B, N, 3 * H * D}, type).requires_grad_();
}

/// q, k, v as torch splits them, which is what split_heads is to equal.
ops::QkvHeads split_by_torch(const at::Tensor& qkv, int64_t num_heads) {
  const auto parts = qkv.view({qkv.size(0), qkv.size(1), 3, num_heads, -1}).unbind(2);
  return {{}, parts[0].transpose(1, 2), parts[1].transpose(1, 2), parts[2].transpose(1, 2)};
}

/// The gradients of a fixed combination of `out`.
std::vector<at::Tensor> gradients(const at::Tensor& out, const std::vector<at::Tensor>& of) {
  const at::Tensor weights = torch::arange(out.numel(), out.options()).sin().view(out.sizes());
  return torch::autograd::grad({(out * weights).sum()}, of, {}, true, false, true);
}

void expect_same(const std::vector<at::Tensor>& a, const std::vector<at::Tensor>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) {
    ASSERT_EQ(a[i].defined(), b[i].defined()) << i;
    if (!a[i].defined()) continue;
    EXPECT_TRUE(torch::equal(a[i], b[i])) << i;
  }
}

class QkvAttention : public ::testing::TestWithParam<AttentionCase> {};

TEST_P(QkvAttention, HasTheBitsOfAttentionOnTheHeadsApart) {
  const AttentionData data = support::make_data(GetParam());
  const int64_t heads = data.q.size(1);
  const at::Tensor qkv =
      torch::cat({data.q, data.k, data.v}, 1).transpose(1, 2).flatten(2).detach().requires_grad_();
  std::vector<at::Tensor> inputs{qkv};
  if (data.metric) inputs.push_back(data.metric->detach().clone().requires_grad_());
  const auto metric = data.metric ? std::optional(inputs[1]) : std::nullopt;
  const ops::QkvHeads apart = split_by_torch(qkv, heads);
  const at::Tensor expected =
      ops::attention(apart.q, apart.k, apart.v, metric, data.fresh_options());
  const at::Tensor out =
      ops::qkv_attention(ops::split_heads(qkv, heads), metric, data.fresh_options());
  EXPECT_TRUE(torch::equal(out, expected));
  expect_same(gradients(out, inputs), gradients(expected, inputs));
}

/// Those with equal sizes of q, k and v, at least one number each.
std::vector<AttentionCase> packable_cases() {
  std::vector<AttentionCase> cases = support::attention_cases();
  std::erase_if(cases, [](const AttentionCase& c) {
    const kernels::AttentionSizes& is = c.sizes;
    return is.H != is.Hk || is.N != is.M || is.B * is.H * is.D * is.N == 0;
  });
  for (AttentionCase& each : cases) each.sizes.Dv = each.sizes.D;
  return cases;
}

INSTANTIATE_TEST_SUITE_P(Cases,
                         QkvAttention,
                         ::testing::ValuesIn(packable_cases()),
                         [](const auto& test) { return test.param.name; });

TEST(QkvAttention, AnswersTheFirstQueriesAlone) {
  const at::Tensor qkv = qkv_input(), m = torch::rand({B, H, 1, D}).requires_grad_();
  for (const int64_t kept : {int64_t{1}, int64_t{7}, N}) {
    const ops::QkvHeads apart = split_by_torch(qkv, H);
    const at::Tensor expected = ops::attention(apart.q.narrow(2, 0, kept), apart.k, apart.v, m);
    const at::Tensor out = ops::qkv_attention(ops::split_heads(qkv, H), m, {}, kept);
    EXPECT_TRUE(torch::equal(out, expected)) << kept;
    expect_same(gradients(out, {qkv, m}), gradients(expected, {qkv, m}));
  }
}

TEST(QkvAttention, GradientsOfOtherReadersOfTheHeadsAreAdded) {
  const at::Tensor qkv = qkv_input();
  const auto all_of = [](const at::Tensor& out, const ops::QkvHeads& heads) {
    return (out + heads.v.square() + heads.v.sin() * heads.k);
  };
  const ops::QkvHeads apart = split_by_torch(qkv, H), together = ops::split_heads(qkv, H);
  const auto expected = gradients(all_of(ops::attention(apart.q, apart.k, apart.v), apart), {qkv});
  const auto found = gradients(all_of(ops::qkv_attention(together), together), {qkv});
  // Sums of three numbers in another order.
  EXPECT_TRUE(torch::allclose(found[0], expected[0], 0, 1e-6));
  // A second backward over the same graph: nothing of the first one is left in it.
  expect_same(gradients(all_of(ops::qkv_attention(together), together), {qkv}), found);
}

TEST(QkvAttention, HeadsThatNobodyReadsHaveNoGradient) {
  const at::Tensor qkv = qkv_input();
  expect_same(gradients(ops::split_heads(qkv, H).k, {qkv}),
              gradients(split_by_torch(qkv, H).k, {qkv}));
  const at::Tensor constant = qkv_input().detach();
  EXPECT_FALSE(ops::qkv_attention(ops::split_heads(constant, H)).requires_grad());
}

TEST(QkvAttention, TakesStridedInputAndDouble) {
  const at::Tensor wide = torch::cat({qkv_input(), qkv_input()}, 2).narrow(2, 1, 3 * H * D);
  const ops::QkvHeads apart = split_by_torch(wide.contiguous(), H);
  EXPECT_TRUE(torch::equal(ops::qkv_attention(ops::split_heads(wide, H)),
                           ops::attention(apart.q, apart.k, apart.v)));
  const at::Tensor qkv = qkv_input(torch::kDouble);
  const ops::QkvHeads doubles = split_by_torch(qkv, H);
  const at::Tensor out = ops::qkv_attention(ops::split_heads(qkv, H), {}, {.is_causal = true}),
                   expected =
                       ops::attention(doubles.q, doubles.k, doubles.v, {}, {.is_causal = true});
  EXPECT_TRUE(torch::equal(out, expected));
  expect_same(gradients(out, {qkv}), gradients(expected, {qkv}));
}

TEST(QkvAttention, RefusesWhatDoesNotFit) {
  const auto split = [](at::IntArrayRef sizes, int64_t num_heads) {
    return error_message<c10::ValueError>(
        [&] { ops::split_heads(torch::zeros(sizes), num_heads); });
  };
  EXPECT_NE(split({2, 4, 20}, 3)
                .find("split_heads: qkv must be (B, N, 3 H D) with H = 3, got (2, 4, 20)"),
            std::string::npos);
  EXPECT_NE(split({4, 18}, 3).find("got (4, 18)"), std::string::npos);
  EXPECT_NE(split({2, 4, 18}, 0).find("with H = 0"), std::string::npos);
  const std::string message = error_message<c10::ValueError>(
      [] { ops::qkv_attention(ops::split_heads(qkv_input(), H), {}, {}, N + 1); });
  EXPECT_NE(message.find("num_queries must be in [0, N] = [0, 19], got 20"), std::string::npos);
  // What attention itself refuses.
  EXPECT_NE(error_message<c10::ValueError>([] {
              ops::qkv_attention(ops::split_heads(qkv_input(), H), torch::ones({1, 1, 1, 2}));
            }).find("metric must be"),
            std::string::npos);
}

TEST(QkvAttention, HasNoSecondDerivative) {
  const at::Tensor qkv = qkv_input();
  const at::Tensor out = ops::qkv_attention(ops::split_heads(qkv, H));
  EXPECT_NE(error_message<c10::NotImplementedError>([&] {
              torch::autograd::grad({out.sum()}, {qkv}, {}, true, /*create_graph=*/true);
            }).find("no second derivative"),
            std::string::npos);
}

}  // namespace
}  // namespace elliptical::qkv_attention_test
