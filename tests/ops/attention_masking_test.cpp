// SPDX-License-Identifier: MIT
//
// What is hidden stays hidden, on both paths: NaN in masked positions, rows that see nothing,
// padding, causal order; and results do not depend on how the inputs lie in memory.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <limits>

#include "elliptical/ops/attention.h"
#include "tests/support/attention_data.h"
#include "tests/support/max_difference.h"

namespace elliptical {
namespace {

using support::AttentionData;
using support::AttentionRun;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

/// Both paths that the tests of this file hold for.
class Masking : public ::testing::TestWithParam<support::AttentionFunction> {};

INSTANTIATE_TEST_SUITE_P(Paths,
                         Masking,
                         ::testing::Values(&ops::attention_with_lse, &ops::attention_composite),
                         [](const auto& test) {
                           return test.param == &ops::attention_with_lse ? "fused" : "composite";
                         });

void expect_same(const AttentionRun& a, const AttentionRun& b) {
  EXPECT_EQ(support::max_difference(a.out, b.out), 0.0);
  EXPECT_EQ(support::max_difference(a.lse, b.lse), 0.0);
  for (size_t i = 0; i < a.gradients.size(); ++i) {
    EXPECT_EQ(support::max_difference(a.gradients[i], b.gradients[i]), 0.0) << "gradient " << i;
  }
}

TEST_P(Masking, K1NanInAKeyThatNoQuerySeesChangesNothing) {
  AttentionData data = support::make_data({.sizes = {2, 2, 2, 4, 6, 3, 4}, .metric = "BH1D"});
  const at::Tensor mask = torch::ones({2, 1, 1, 6}, torch::kBool);
  mask.select(3, 2).fill_(false);
  data.options.attn_mask = mask;
  const AttentionRun clean = support::run(GetParam(), data);
  data.k.select(2, 2).fill_(kNan);
  data.v.select(2, 2).fill_(kInfinity);
  expect_same(support::run(GetParam(), data), clean);
}

TEST_P(Masking, K1NanInPaddingChangesNothing) {
  AttentionData data = support::make_data({.metric = "BHND", .key_lengths = {3, 4}});
  const AttentionRun clean = support::run(GetParam(), data);
  for (const at::Tensor& t : {data.q, data.k, data.v, *data.metric}) {
    t.select(0, 0).narrow(1, 3, 2).fill_(kNan);
    t.select(0, 1).narrow(1, 4, 1).fill_(kInfinity);
  }
  expect_same(support::run(GetParam(), data), clean);
}

TEST_P(Masking, NanInTheFutureLeavesThePastAlone) {
  constexpr int64_t kWhen = 3;
  AttentionData data = support::make_data({.metric = "BHND", .is_causal = true});
  const auto [clean_out, clean_lse] = GetParam()(data.q, data.k, data.v, data.metric, data.options);
  for (const at::Tensor& t : {data.q, data.k, data.v, *data.metric}) t.select(2, kWhen).fill_(kNan);
  const auto [out, lse] = GetParam()(data.q, data.k, data.v, data.metric, data.options);
  EXPECT_TRUE(out.narrow(2, 0, kWhen).equal(clean_out.narrow(2, 0, kWhen)));
  EXPECT_TRUE(lse.narrow(2, 0, kWhen).equal(clean_lse.narrow(2, 0, kWhen)));
  EXPECT_TRUE(out.narrow(2, kWhen, 5 - kWhen).isnan().all().item<bool>());
}

TEST_P(Masking, K1ARowThatSeesNothingIsZeroWithZeroGradient) {
  AttentionData data = support::make_data({.metric = "BHND"});
  const at::Tensor keep = torch::ones({2, 2, 5, 5}, torch::kBool);
  keep.select(2, 1).fill_(false);
  data.options.attn_mask = keep;
  const AttentionRun result = support::run(GetParam(), data);
  EXPECT_EQ(result.out.select(2, 1).abs().max().item<float>(), 0.0f);
  EXPECT_EQ(result.lse.select(2, 1).max().item<float>(), -kInfinity);
  EXPECT_EQ(result.gradients[0].select(2, 1).abs().max().item<float>(), 0.0f);
  EXPECT_EQ(result.gradients[3].select(2, 1).abs().max().item<float>(), 0.0f);
  for (const at::Tensor& gradient : result.gradients) {
    EXPECT_TRUE(gradient.isfinite().all().item<bool>());
  }
}

TEST_P(Masking, PaddingHasOutputsAndGradientsOfExactlyZero) {
  const AttentionData data = support::make_data({.metric = "BHND", .key_lengths = {3, 0}});
  const AttentionRun result = support::run(GetParam(), data);
  const auto padding_sum = [](const at::Tensor& t) {
    return t.select(0, 0).narrow(1, 3, 2).abs().sum().item<float>() +
           t.select(0, 1).abs().sum().item<float>();
  };
  EXPECT_EQ(padding_sum(result.out), 0.0f);
  for (const at::Tensor& gradient : result.gradients) EXPECT_EQ(padding_sum(gradient), 0.0f);
}

TEST_P(Masking, PaddingIsTheSameAsAShorterSequence) {
  const AttentionData data = support::make_data(
      {.sizes = {1, 2, 2, 5, 5, 3, 4}, .metric = "1HND", .key_lengths = {3}, .is_causal = true});
  AttentionData shorter = data;
  for (at::Tensor* t : {&shorter.q, &shorter.k, &shorter.v, &*shorter.metric})
    *t = t->narrow(2, 0, 3);
  shorter.options.key_lengths.reset();
  const AttentionRun padded = support::run(GetParam(), data);
  const AttentionRun cut = support::run(GetParam(), shorter);
  EXPECT_LE(support::max_difference(padded.out.narrow(2, 0, 3), cut.out), 1e-6);
  for (size_t i = 0; i < cut.gradients.size(); ++i) {
    EXPECT_LE(support::max_difference(padded.gradients[i].narrow(2, 0, 3), cut.gradients[i]), 1e-6);
  }
}

TEST_P(Masking, TheFutureNeverMatters) {
  AttentionData data =
      support::make_data({.sizes = {2, 2, 2, 4, 7, 3, 4}, .metric = "BHND", .is_causal = true});
  const at::Tensor before =
      std::get<0>(GetParam()(data.q, data.k, data.v, data.metric, data.options));
  data.k.select(2, 5).normal_();  // query n sees keys up to n + 3
  data.v.select(2, 5).normal_();
  const at::Tensor after =
      std::get<0>(GetParam()(data.q, data.k, data.v, data.metric, data.options));
  EXPECT_TRUE(before.narrow(2, 0, 2).equal(after.narrow(2, 0, 2)));
  EXPECT_FALSE(before.narrow(2, 2, 2).equal(after.narrow(2, 2, 2)));
}

TEST_P(Masking, N2HugeLogitsStayFinite) {
  AttentionData data = support::make_data({.metric = "BH1D"});
  data.options.scale = 1e4;
  const AttentionRun result = support::run(GetParam(), data);
  EXPECT_TRUE(result.out.isfinite().all().item<bool>());
  for (const at::Tensor& g : result.gradients) EXPECT_TRUE(g.isfinite().all().item<bool>());
}

TEST(AttentionIdentities, AMetricOfOnesIsPlainAttentionBitForBit) {
  for (const bool is_causal : {false, true}) {
    AttentionData data =
        support::make_data({.sizes = {2, 2, 2, 37, 37, 16, 16}, .is_causal = is_causal});
    const AttentionRun plain = support::run(ops::attention_with_lse, data);
    for (const auto& shape : {std::vector<int64_t>{1, 1, 1, 16}, {2, 2, 37, 16}}) {
      data.metric = torch::ones(shape);
      AttentionRun ones = support::run(ops::attention_with_lse, data);
      ones.gradients.pop_back();
      expect_same(plain, ones);
    }
  }
}

TEST(AttentionIdentities, GroupedHeadsAreRepeatedHeads) {
  const AttentionData data = support::make_data({.sizes = {2, 4, 2, 5, 5, 3, 4}});
  const at::Tensor grouped = ops::attention(data.q, data.k, data.v);
  const at::Tensor repeated =
      ops::attention(data.q, data.k.repeat_interleave(2, 1), data.v.repeat_interleave(2, 1));
  EXPECT_TRUE(grouped.equal(repeated));
}

TEST(AttentionIdentities, RowsGivenAsAnExpandedMetricHaveAGradientEach) {
  const AttentionData data = support::make_data({.metric = "BH1D"});
  const at::Tensor expanded = data.metric->expand({2, 2, 5, 3}).detach().requires_grad_();
  const at::Tensor copied = expanded.detach().contiguous().requires_grad_();
  const at::Tensor a = torch::autograd::grad(
      {ops::attention(data.q, data.k, data.v, expanded).sin().sum()}, {expanded})[0];
  const at::Tensor b = torch::autograd::grad(
      {ops::attention(data.q, data.k, data.v, copied).sin().sum()}, {copied})[0];
  EXPECT_TRUE(a.equal(b));
}

class AttentionLayout : public ::testing::TestWithParam<std::vector<int64_t>> {};

TEST_P(AttentionLayout, K3DoesNotChangeTheResult) {
  AttentionData data = support::make_data({.sizes = {2, 2, 2, 7, 7, 9, 9}});
  const AttentionRun contiguous = support::run(ops::attention_with_lse, data);
  // The same numbers in memory of another order, with a gap after each row.
  const auto relaid = [&](const at::Tensor& t) {
    const at::Tensor ordered = t.permute(GetParam()).contiguous();
    std::vector<int64_t> inverse(4);
    for (int64_t i = 0; i < 4; ++i) inverse[GetParam()[i]] = i;
    return torch::constant_pad_nd(ordered, {0, 3}, kNan)
        .narrow(3, 0, ordered.size(3))
        .permute(inverse);
  };
  for (at::Tensor* t : {&data.q, &data.k, &data.v}) *t = relaid(*t);
  expect_same(contiguous, support::run(ops::attention_with_lse, data));
}

INSTANTIATE_TEST_SUITE_P(Orders,
                         AttentionLayout,
                         ::testing::Values(std::vector<int64_t>{0, 1, 2, 3},
                                           std::vector<int64_t>{0, 2, 1, 3},
                                           std::vector<int64_t>{2, 0, 1, 3},
                                           std::vector<int64_t>{0, 1, 3, 2},
                                           std::vector<int64_t>{3, 2, 1, 0}));

TEST(AttentionLayout, OutputAndGradientsHaveTheOrderOfTheInput) {
  const at::Tensor packed = torch::randn({2, 7, 3, 4, 8}).requires_grad_();  // (B, N, 3, H, D)
  const at::Tensor q = packed.select(2, 0).transpose(1, 2), k = packed.select(2, 1).transpose(1, 2),
                   v = packed.select(2, 2).transpose(1, 2);
  const at::Tensor out = ops::attention(q, k, v);
  EXPECT_TRUE(out.transpose(1, 2).is_contiguous());
  for (const at::Tensor& g : torch::autograd::grad({out.sum()}, {q, k, v})) {
    EXPECT_TRUE(g.transpose(1, 2).is_contiguous());
  }
  EXPECT_TRUE(ops::attention(q.contiguous(), k, v).is_contiguous());
}

}  // namespace
}  // namespace elliptical
