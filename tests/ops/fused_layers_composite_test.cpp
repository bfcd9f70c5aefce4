// SPDX-License-Identifier: MIT
//
// The composite forms of the fused layers: the formula, and gradients in double.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "elliptical/ops/adaptive_softmax.h"
#include "elliptical/ops/dropout.h"
#include "elliptical/ops/embedding.h"
#include "elliptical/ops/feed_forward.h"
#include "elliptical/ops/residual_norm.h"
#include "tests/support/gradcheck.h"

namespace elliptical::fused_layers_composite_test {
namespace {

using Inputs = std::vector<at::Tensor>;

at::Tensor normal(at::IntArrayRef shape) { return torch::randn(shape, torch::kDouble); }

constexpr ops::ElementDropout kDropout{.p = 0.3, .seed = 5};

TEST(FusedLayersComposite, GradientsMatchDifferences) {
  torch::manual_seed(1);
  EXPECT_TRUE(support::gradients_match(
      [](const Inputs& in) { return Inputs{ops::bias_relu_dropout(in[0], in[1], kDropout)}; },
      {normal({3, 2, 7}), normal({7})}));
  EXPECT_TRUE(support::gradients_match(
      [](const Inputs& in) {
        return Inputs{
            ops::residual_dropout_norm(in[0], in[1], in[2], {in[3], in[4], 1e-5}, kDropout)};
      },
      {normal({5, 6}), normal({6}), normal({5, 6}), normal({6}), normal({6})}));
  EXPECT_TRUE(support::gradients_match(
      [](const Inputs& in) {
        return Inputs{ops::feed_forward(in[0], {in[1], in[2], in[3]}, kDropout)};
      },
      {normal({3, 4}), normal({5, 4}), normal({5}), normal({4, 5})}));
  const at::Tensor tokens = torch::randint(9, {2, 4}, torch::kLong), positions = normal({4, 3});
  EXPECT_TRUE(support::gradients_match(
      [&](const Inputs& in) {
        return Inputs{ops::embed(in[0], tokens, positions, {.scale = 1.7, .dropout = kDropout})};
      },
      {normal({9, 3})}));
  EXPECT_TRUE(support::gradients_match(
      [](const Inputs& in) { return Inputs{ops::element_dropout(in[0], kDropout)}; },
      {normal({4, 5})}));
}

TEST(FusedLayersComposite, AdaptiveSoftmaxGradientsMatchDifferences) {
  torch::manual_seed(2);
  const at::Tensor targets = torch::tensor({0, 3, 4, 6, 7, 11, 2}, torch::kLong);
  EXPECT_TRUE(support::gradients_match(
      [&](const Inputs& in) {
        return Inputs{ops::adaptive_nll(in[0],
                                        {.weight = in[1],
                                         .bias = in[2],
                                         .cluster_weight = in[3],
                                         .cluster_bias = in[4],
                                         .cutoffs = {4, 7}},
                                        targets)};
      },
      {normal({7, 3}), normal({12, 3}), normal({12}), normal({2, 3}), normal({2})}));
}

TEST(FusedLayersComposite, AdaptiveProbabilitiesSumToOneAndGiveTheLoss) {
  torch::manual_seed(3);
  const at::Tensor hidden = normal({5, 4});
  const ops::AdaptiveSoftmaxWeights weights{.weight = normal({20, 4}),
                                            .bias = normal({20}),
                                            .cluster_weight = normal({3, 4}),
                                            .cluster_bias = normal({3}),
                                            .cutoffs = {6, 10, 15}};
  const at::Tensor log_p = ops::adaptive_log_probabilities(hidden, weights);
  EXPECT_TRUE(torch::allclose(log_p.exp().sum(1), torch::ones({5}, torch::kDouble)));
  const at::Tensor targets = torch::tensor({5, 6, 14, 15, 19}, torch::kLong);
  EXPECT_TRUE(torch::allclose(ops::adaptive_nll(hidden, weights, targets),
                              -log_p.gather(1, targets.unsqueeze(1)).squeeze(1)));
}

TEST(FusedLayersComposite, ClustersReadTheHeadFromTheEnd) {
  // Cluster 1 of 2 reads the last head column: with its bias large, its words are certain.
  const ops::AdaptiveSoftmaxWeights weights{
      .weight = torch::zeros({6, 1}, torch::kDouble),
      .bias = torch::zeros({6}, torch::kDouble),
      .cluster_weight = torch::zeros({2, 1}, torch::kDouble),
      .cluster_bias = torch::tensor({0.0, 50.0}, torch::kDouble),
      .cutoffs = {2, 4}};
  const at::Tensor p =
      ops::adaptive_log_probabilities(torch::zeros({1, 1}, torch::kDouble), weights).exp()[0];
  EXPECT_NEAR(p[2].item<double>(), 0.5, 1e-12);
  EXPECT_NEAR(p[4].item<double>(), 0.0, 1e-12);
}

}  // namespace
}  // namespace elliptical::fused_layers_composite_test
