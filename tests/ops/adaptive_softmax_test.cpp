// SPDX-License-Identifier: MIT
//
// The adaptive softmax in chunks against its composite form in double: values and gradients, every
// instruction set, any upstream gradient, clusters without tokens, many chunks, messages.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "elliptical/ops/adaptive_softmax.h"
#include "tests/kernels/targets.h"
#include "tests/support/layer_cases.h"
#include "tests/support/torch_refusal.h"

namespace elliptical {
namespace {

using support::Tensors;

ops::AdaptiveSoftmaxWeights weights_of(const Tensors& t, const std::vector<int64_t>& cutoffs) {
  if (cutoffs.empty()) return {.weight = t[1], .bias = t[2]};
  return {t[1], t[2], t[3], t[4], cutoffs};
}

struct Shape {
  int64_t T, C, V;
  std::vector<int64_t> cutoffs;
};

Tensors inputs_of(const Shape& shape) {
  const auto K = static_cast<int64_t>(shape.cutoffs.size());
  Tensors inputs{torch::randn({shape.T, shape.C}), torch::randn({shape.V, shape.C}),
                 torch::randn({shape.V})};
  if (K > 0) {
    inputs.push_back(torch::randn({K, shape.C}));
    inputs.push_back(torch::randn({K}));
  }
  return inputs;
}

/// `upstream` turns the losses into what is differentiated.
::testing::AssertionResult matches(const Shape& shape,
                                   const at::Tensor& targets,
                                   const std::function<at::Tensor(const at::Tensor&)>& upstream) {
  return support::layers_match(
      [&](const Tensors& t) {
        return upstream(ops::adaptive_nll(t[0], weights_of(t, shape.cutoffs), targets));
      },
      [&](const Tensors& t) {
        return upstream(ops::adaptive_nll_composite(t[0], weights_of(t, shape.cutoffs), targets));
      },
      inputs_of(shape));
}

const std::vector<Shape> kShapes = {
    {1, 1, 2, {1}},        {7, 5, 40, {10, 17, 33}}, {31, 16, 67, {16, 48}}, {33, 17, 130, {}},
    {64, 8, 1500, {1031}}, {0, 4, 20, {5}},          {2, 3, 5, {1, 2, 3, 4}}};

TEST(AdaptiveSoftmax, MatchesTheCompositeInDouble) {
  for (const std::string& target : kernels::test::targets_under_test()) {
    const kernels::test::ForcedTarget forced(target);
    torch::manual_seed(21);
    for (const Shape& shape : kShapes) {
      const at::Tensor targets = torch::randint(shape.V, {shape.T}, torch::kLong);
      // Each token its own gradient, the gradient of a mean, a uniform one that is not a mean's.
      for (const auto& upstream : std::vector<std::function<at::Tensor(const at::Tensor&)>>{
               [](const at::Tensor& nll) { return nll; },
               [](const at::Tensor& nll) { return nll.numel() ? nll.mean() : nll.sum(); },
               [](const at::Tensor& nll) { return nll.sum() * 3; }}) {
        EXPECT_TRUE(matches(shape, targets, upstream))
            << "T " << shape.T << ", V " << shape.V << ", " << target;
      }
    }
  }
}

TEST(AdaptiveSoftmax, ClustersWithoutTokens) {
  torch::manual_seed(22);
  const Shape shape{9, 4, 30, {10, 20}};
  const auto mean = [](const at::Tensor& nll) { return nll.mean(); };
  EXPECT_TRUE(matches(shape, torch::full({9}, 3, torch::kLong), mean));
  EXPECT_TRUE(matches(shape, torch::full({9}, 25, torch::kLong), mean));
}

TEST(AdaptiveSoftmax, ManyChunksAndBlocks) {
  // 39,000 words x 1,000 tokens are two chunks of dozens of blocks, half of the tokens are one.
  torch::manual_seed(23);
  const Shape shape{1000, 2, 40000, {39000}};
  const Tensors inputs = inputs_of(shape);
  const at::Tensor targets = torch::randint(40000, {1000}, torch::kLong);
  const auto run = [&](int64_t begin, int64_t count) {
    return support::values_and_gradients(
        [&](const Tensors& t) {
          return ops::adaptive_nll(t[0].narrow(0, begin, count), weights_of(t, shape.cutoffs),
                                   targets.narrow(0, begin, count))
              .sum();
        },
        inputs);
  };
  const Tensors whole = run(0, 1000), first = run(0, 500), second = run(500, 500);
  for (size_t i = 0; i < whole.size(); ++i) {
    EXPECT_TRUE(whole[i].allclose(first[i] + second[i], 1e-4, 1e-5)) << "tensor " << i;
  }
}

TEST(AdaptiveSoftmax, LargeLogitsStayFinite) {
  const at::Tensor hidden = torch::full({3, 1}, 100.0f),
                   weight = torch::tensor({{-3.0f}, {0.0f}, {3.0f}});
  const ops::AdaptiveSoftmaxWeights weights{.weight = weight, .bias = torch::zeros({3})};
  const at::Tensor nll = ops::adaptive_nll(hidden, weights, torch::tensor({0, 1, 2}, torch::kLong));
  EXPECT_TRUE(nll.allclose(torch::tensor({600.0f, 300.0f, 0.0f})));
}

TEST(AdaptiveSoftmax, NanPassesThrough) {
  const at::Tensor hidden = torch::full({2, 3}, std::numeric_limits<float>::quiet_NaN());
  const ops::AdaptiveSoftmaxWeights weights{.weight = torch::randn({40, 3}),
                                            .bias = torch::zeros({40})};
  EXPECT_TRUE(ops::adaptive_nll(hidden, weights, torch::tensor({0, 1}, torch::kLong))
                  .isnan()
                  .all()
                  .item<bool>());
}

TEST(AdaptiveSoftmax, AKeptGraphGivesTheSameGradientTwice) {
  torch::manual_seed(24);
  const at::Tensor hidden = torch::randn({4, 3}).requires_grad_();
  const ops::AdaptiveSoftmaxWeights weights{.weight = torch::randn({40, 3}),
                                            .bias = torch::zeros({40})};
  const at::Tensor loss =
      ops::adaptive_nll(hidden, weights, torch::tensor({0, 1, 7, 39}, torch::kLong)).mean();
  const at::Tensor first = torch::autograd::grad({loss}, {hidden}, {}, /*retain_graph=*/true)[0];
  EXPECT_TRUE(torch::autograd::grad({loss}, {hidden})[0].allclose(first));
}

TEST(AdaptiveSoftmax, MessagesNameTheArgument) {
  const at::Tensor hidden = torch::zeros({2, 3}), targets = torch::zeros({2}, torch::kLong);
  const auto message = [&](const ops::AdaptiveSoftmaxWeights& weights, const at::Tensor& words) {
    return support::refusal([&] { ops::adaptive_nll(hidden, weights, words); });
  };
  const ops::AdaptiveSoftmaxWeights good{
      torch::zeros({9, 3}), torch::zeros({9}), torch::zeros({2, 3}), torch::zeros({2}), {3, 6}};
  auto bad = good;
  bad.weight = torch::zeros({9, 4});
  EXPECT_EQ(message(bad, targets), "adaptive_nll: weight must be (V, C) = (V, 3), got (9, 4)");
  bad = good;
  bad.cluster_bias = torch::zeros({3});
  EXPECT_EQ(message(bad, targets), "adaptive_nll: cluster_bias must be (K) = [2], got (3)");
  bad = good;
  bad.cutoffs = {3, 9};
  EXPECT_EQ(message(bad, targets),
            "adaptive_nll: cutoffs must increase within (0, V) = (0, 9), got 9 after 3");
  EXPECT_EQ(message(good, torch::zeros({3}, torch::kLong)),
            "adaptive_nll: targets must be (T) = (2), got (3)");
  EXPECT_EQ(message(good, torch::tensor({0, 9}, torch::kLong)),
            "adaptive_nll: targets must be in [0, V) = [0, 9), got 9 at element 1");
}

}  // namespace
}  // namespace elliptical
