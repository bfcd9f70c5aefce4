// SPDX-License-Identifier: MIT
#include "elliptical/attack/spsa.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <set>

#include "tests/attack/small_models.h"

namespace elliptical::attack::testing {
namespace {

SpsaOptions with_pairs(int64_t pairs, int64_t pass_size = 256) {
  SpsaOptions options;
  options.pairs = pairs;
  options.pass_size = pass_size;
  return options;
}

/// The loss <g, p>, whose estimates are known: mean g, mean square |g|^2 (1 + (d - 1) / pairs).
TEST(SpsaGradient, HasTheMomentsOfALinearLoss) {
  const at::Tensor g = wave({1, 3, 4, 4}, 0.2, at::kDouble);
  constexpr int64_t kEstimates = 400, kPairs = 16;
  const at::Tensor p = wave({kEstimates, 3, 4, 4}, 0.5, at::kDouble);  // one estimate a picture
  const auto loss = [&](const at::Tensor& points, const at::Tensor&) {
    return (points * g).flatten(1).sum(1);
  };
  const at::Tensor estimates =
      spsa_gradient(loss, p, picture_keys(RandomKey(3), 0, kEstimates), with_pairs(kPairs));
  const double square = (g * g).sum().item<double>();
  const auto d = static_cast<double>(g.numel());
  // An element of an estimate varies by |g|^2 / pairs; five standard deviations of the mean, for
  // the largest of 48 elements.
  EXPECT_LE((estimates.mean(0) - g[0]).abs().max().item<double>(),
            5 * std::sqrt(square / kPairs / kEstimates));
  const at::Tensor squares = estimates.flatten(1).square().sum(1);
  const double expected = square * (1 + (d - 1) / kPairs);
  EXPECT_NEAR(squares.mean().item<double>(), expected,
              5 * squares.std().item<double>() / std::sqrt(double{kEstimates}));
}

TEST(SpsaGradient, DoesNotDependOnTheSizeOfPasses) {
  const at::Tensor p = wave({3, 3, 4, 4}, 0.5, at::kDouble), y = at::arange(3);
  const LogitsFn model = linear_model(wave({4, 3, 4, 4}, 0.1, at::kDouble), at::zeros({4}));
  int64_t largest = 0;
  const auto loss = [&](const at::Tensor& points, const at::Tensor& owner) {
    largest = std::max(largest, points.size(0));
    return margin(plain_logits(model, points), y.index_select(0, owner));
  };
  const PictureKeys keys = picture_keys(RandomKey(3), 0, 3);
  const at::Tensor all = spsa_gradient(loss, p, keys, with_pairs(10, 256));
  EXPECT_EQ(largest, 60);
  largest = 0;
  EXPECT_TRUE(at::equal(spsa_gradient(loss, p, keys, with_pairs(10, 7)), all));
  EXPECT_EQ(largest, 6);
}

/// Where the model is evaluated in the second step of an attack, for two eps: in the strict form
/// the points move with what was found so far, in the released form they do not.
TEST(Spsa, TheReleasedFormNeverLooksAtWhatItFound) {
  const Labelled data = generated_pictures(2, at::kDouble);
  const LogitsFn net = trained_net(at::kDouble);
  for (const auto& [point, depends] :
       {std::pair{"point=current", true}, {"point=twice-picture", false}}) {
    std::vector<std::vector<at::Tensor>> seen;
    for (const double eps : {0.01, 0.1}) {
      seen.emplace_back();
      const LogitsFn spy = [&](const at::Tensor& x) {
        seen.back().push_back(x.clone());
        return net(x);
      };
      make_attack(cheap_options("spsa", {"steps=2", point}))
          ->perturb(spy, with_keys(data), pixel_threat(eps));
    }
    ASSERT_EQ(seen[0].size(), 3);  // clean logits and two steps
    for (const size_t step : {1, 2}) {
      EXPECT_EQ(at::equal(seen[0][step], seen[1][step]), !depends) << point << " " << step;
    }
    if (!depends) {
      const at::Tensor centre = seen[0][1].narrow(0, 0, 8).mean(0);
      EXPECT_LE((centre - 2 * data.x[0]).abs().max().item<double>(), 0.01 + 1e-12);
    }
  }
}

TEST(Spsa, LowersTheMarginOfALinearModel) {
  const at::Tensor W = wave({2, 3, 4, 4}, 0.4);
  const LogitsFn model = linear_model(W, at::zeros({2}));
  const Labelled data{wave({4, 3, 4, 4}, 0.9), at::arange(4) % 2};
  const at::Tensor x = make_attack(cheap_options("spsa", {"steps=40", "pairs=64"}))
                           ->perturb(model, with_keys(data), {.eps = 0.05});
  const at::Tensor gained = margin(model(data.x), data.y) - margin(model(x), data.y);
  const double most = 0.05 * (W[0] - W[1]).abs().sum().item<double>();  // the corner of the ball
  EXPECT_GE(gained.min().item<double>(), 0.8 * most);
}

}  // namespace
}  // namespace elliptical::attack::testing
