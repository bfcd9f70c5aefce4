// SPDX-License-Identifier: MIT
//
// Dropout is a pure function of the seed: calls replay it, backward uses the same mask, both paths
// drop the same probabilities.
#include <ATen/CPUGeneratorImpl.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "elliptical/ops/attention.h"

namespace elliptical::attention_dropout_test {
namespace {

constexpr int64_t kTokens = 48;

ops::AttentionOptions with_seed(uint64_t seed, double dropout_p) {
  return {.dropout_p = dropout_p, .generator = at::make_generator<at::CPUGeneratorImpl>(seed)};
}

/// With equal logits and v = identity, the output is the matrix of dropped probabilities.
at::Tensor probabilities(uint64_t seed, double dropout_p) {
  const at::Tensor q = torch::zeros({2, 3, kTokens, 4});
  return ops::attention(q, q, torch::eye(kTokens).expand({2, 3, kTokens, kTokens}), {},
                        with_seed(seed, dropout_p));
}

TEST(AttentionDropout, KeepsTheRightShareAndScalesIt) {
  const at::Tensor p = probabilities(1, 0.25);
  const at::Tensor kept = p > 0;
  // 13,824 draws: the standard error of the share is 0.0037.
  EXPECT_NEAR(kept.to(torch::kDouble).mean().item<double>(), 0.75, 0.015);
  EXPECT_TRUE(
      torch::allclose(p.masked_select(kept), torch::full({}, 1.0 / kTokens / 0.75, torch::kFloat)));
}

TEST(AttentionDropout, IsReplayedByTheSeed) {
  EXPECT_TRUE(probabilities(1, 0.5).equal(probabilities(1, 0.5)));
  EXPECT_FALSE(probabilities(1, 0.5).equal(probabilities(2, 0.5)));
}

TEST(AttentionDropout, TakesASeedItself) {
  const at::Tensor q = torch::zeros({1, 1, kTokens, 4}),
                   v = torch::eye(kTokens).expand({1, 1, kTokens, kTokens});
  const auto drawn = [&](int64_t seed) {
    return ops::attention(q, q, v, {}, {.dropout_p = 0.5, .dropout_seed = seed});
  };
  EXPECT_TRUE(drawn(7).equal(drawn(7)));
  EXPECT_FALSE(drawn(7).equal(drawn(8)));
}

TEST(AttentionDropout, DiffersBetweenHeadsAndBatchItems) {
  const at::Tensor p = probabilities(1, 0.5);
  EXPECT_FALSE(p[0][0].equal(p[0][1]));
  EXPECT_FALSE(p[0][0].equal(p[1][0]));
}

TEST(AttentionDropout, DrawsAFreshSeedFromTheGenerator) {
  ops::AttentionOptions options = with_seed(1, 0.5);
  const at::Tensor q = torch::zeros({1, 1, kTokens, 4}),
                   v = torch::eye(kTokens).expand({1, 1, kTokens, kTokens});
  const at::Tensor first = ops::attention(q, q, v, {}, options);
  EXPECT_FALSE(first.equal(ops::attention(q, q, v, {}, options)));

  torch::manual_seed(5);
  options.generator.reset();
  const at::Tensor by_default = ops::attention(q, q, v, {}, options);
  torch::manual_seed(5);
  EXPECT_TRUE(by_default.equal(ops::attention(q, q, v, {}, options)));
}

TEST(AttentionDropout, K7BackwardUsesTheMaskOfForward) {
  // out = P v, so the gradient of sum(out) with respect to v is the column sums of P.
  const at::Tensor q = torch::zeros({2, 3, kTokens, 4});
  const at::Tensor v = torch::eye(kTokens).repeat({2, 3, 1, 1}).requires_grad_();
  const at::Tensor out = ops::attention(q, q, v, {}, with_seed(9, 0.5));
  const at::Tensor dv = torch::autograd::grad({out.sum()}, {v})[0];
  const at::Tensor column_sums = out.detach().sum(2).unsqueeze(-1).expand_as(dv);
  EXPECT_TRUE(torch::allclose(dv, column_sums, 1e-5, 1e-6));
}

TEST(AttentionDropout, BothPathsDropTheSame) {
  const at::Tensor q = torch::randn({2, 3, kTokens, 4}), v = torch::randn({2, 3, kTokens, 5});
  const at::Tensor fused = ops::attention(q, q, v, {}, with_seed(3, 0.4));
  const at::Tensor composite =
      std::get<0>(ops::attention_composite(q, q, v, {}, with_seed(3, 0.4)));
  EXPECT_TRUE(torch::allclose(fused, composite, 1e-5, 1e-6));
}

}  // namespace
}  // namespace elliptical::attention_dropout_test
