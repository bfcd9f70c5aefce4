// SPDX-License-Identifier: MIT
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cmath>

#include "elliptical/nn/adaptive_softmax.h"
#include "elliptical/nn/initialize.h"
#include "elliptical/nn/positions.h"
#include "tests/support/attention_stack.h"

namespace elliptical::nn {
namespace {

using support::wave;

TEST(Positions, SinesThenCosines) {
  const at::Tensor rows = sinusoids(3, 2, 6);
  ASSERT_EQ(rows.sizes(), (at::IntArrayRef{2, 6}));
  for (int64_t p = 0; p < 2; ++p) {
    for (int64_t j = 0; j < 3; ++j) {
      const double angle = static_cast<double>(3 + p) * std::pow(10000.0, -2.0 * j / 6.0);
      EXPECT_NEAR(rows[p][j].item<double>(), std::sin(angle), 1e-12);
      EXPECT_NEAR(rows[p][3 + j].item<double>(), std::cos(angle), 1e-12);
    }
  }
}

TEST(Initialize, NormalNumbersFromTheKeyAlone) {
  at::Tensor a = torch::empty({101, 99}), b = torch::empty({101, 99});
  fill_normal(a, 1.0, 0.02, RandomKey(5).derive("w"));
  torch::rand({3});
  fill_normal(b, 1.0, 0.02, RandomKey(5).derive("w"));
  EXPECT_TRUE(at::equal(a, b));
  // 9,999 numbers: 5 standard errors of mean and standard deviation.
  EXPECT_NEAR(a.mean().item<double>(), 1.0, 5 * 0.02 / 100);
  EXPECT_NEAR(a.std().item<double>(), 0.02, 5 * 0.02 / 141);
  fill_normal(b, 1.0, 0.02, RandomKey(5).derive("v"));
  EXPECT_FALSE(at::equal(a, b));
}

AdaptiveSoftmax make_softmax_layer(const std::vector<int64_t>& cutoffs) {
  AdaptiveSoftmax layer(30, 8, cutoffs);
  const torch::NoGradGuard no_grad;
  double frequency = 0.4;
  for (at::Tensor& parameter : layer.parameters()) {
    parameter.copy_(wave(parameter.sizes(), frequency += 0.1));
  }
  return layer;
}

TEST(AdaptiveSoftmaxLayer, SumsToOneAndPiecesMultiply) {  // LM-5
  const AdaptiveSoftmax layer = make_softmax_layer({10, 15, 22, 40});
  EXPECT_EQ(layer.cutoffs(), (std::vector<int64_t>{10, 15, 22}));
  const at::Tensor hidden = wave({5, 8}), words = wave({30, 8}, 0.9);
  const at::Tensor p = layer.log_probabilities(hidden, words).exp();
  EXPECT_LE((p.sum(1) - 1.0).abs().max().item<double>(), 1e-5);
  // Each piece holds what the head gives its cluster.
  for (const auto& [begin, end] :
       {std::pair<int64_t, int64_t>{0, 10}, {10, 15}, {15, 22}, {22, 30}}) {
    const at::Tensor piece = p.narrow(1, begin, end - begin).sum(1);
    EXPECT_GT(piece.min().item<double>(), 0.0);
    EXPECT_LT(piece.max().item<double>(), 1.0);
  }
  for (int64_t word = 0; word < 30; ++word) {
    const at::Tensor nll = layer.nll(hidden, words, torch::full({5}, word));
    EXPECT_LE((nll + p.select(1, word).log()).abs().max().item<double>(), 1e-4);
  }
}

TEST(AdaptiveSoftmaxLayer, WithoutClustersIsTheFullSoftmax) {  // LM-5
  const AdaptiveSoftmax layer = make_softmax_layer({});
  EXPECT_EQ(layer.parameters().size(), 1u);
  const at::Tensor hidden = wave({5, 8}), words = wave({30, 8}, 0.9);
  const at::Tensor logits = hidden.matmul(words.t()) + layer.parameters()[0];
  EXPECT_LE(
      (layer.log_probabilities(hidden, words) - logits.log_softmax(1)).abs().max().item<double>(),
      1e-5);
  const at::Tensor targets = torch::tensor({0, 7, 29, 3, 3});
  EXPECT_LE((layer.nll(hidden, words, targets) +
             logits.log_softmax(1).gather(1, targets.unsqueeze(1)).squeeze(1))
                .abs()
                .max()
                .item<double>(),
            1e-5);
}

}  // namespace
}  // namespace elliptical::nn
