// SPDX-License-Identifier: MIT
//
// fgsm and pgd where the answer is known, and how accuracy falls with eps.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "tests/attack/small_models.h"

namespace elliptical::attack::testing {
namespace {

struct TwoClasses {
  at::Tensor W = wave({2, 3, 4, 4}, 0.4, at::kDouble);
  LogitsFn model = linear_model(W, at::zeros({2}, at::kDouble));
  Labelled data{wave({6, 3, 4, 4}, 0.9, at::kDouble), at::arange(6) % 2};
  /// The corner that every attack on a linear model should find.
  at::Tensor corner(double eps) const {
    const at::Tensor away = (W[1] - W[0]).sign();
    return data.x + eps * (1 - 2 * data.y.to(at::kDouble)).view({-1, 1, 1, 1}) * away;
  }
};

at::Tensor attacked(const TwoClasses& problem, const std::string& name, uint64_t seed) {
  return make_attack(cheap_options(name))
      ->perturb(problem.model, with_keys(problem.data, seed), {.eps = 0.03});
}

TEST(Fgsm, FindsTheCornerOfALinearModel) {
  const TwoClasses problem;
  // Rounding of x + eps.
  EXPECT_LE((attacked(problem, "fgsm", 1) - problem.corner(0.03)).abs().max().item<double>(),
            1e-15);
}

TEST(Pgd, EndsInTheCornerOfALinearModelForEverySeed) {
  const TwoClasses problem;
  for (const uint64_t seed : {1, 2, 3}) {
    EXPECT_LE((attacked(problem, "pgd", seed) - problem.corner(0.03)).abs().max().item<double>(),
              1e-15);
  }
  // 14 steps of 0.15 eps cross the ball, 10 do not reach the corner from everywhere.
  for (const auto& [steps, reaches] : {std::pair{"steps=14", true}, {"steps=10", false}}) {
    const at::Tensor x = make_attack(cheap_options("pgd", {steps}))
                             ->perturb(problem.model, with_keys(problem.data), {.eps = 0.03});
    EXPECT_EQ((x - problem.corner(0.03)).abs().max().item<double>() < 1e-15, reaches) << steps;
  }
}

TEST(Pgd, StartsAnywhereInTheBall) {
  const TwoClasses problem;
  const ChosenOptions options = cheap_options("pgd", {"steps=1", "step_ratio=1e-9"});
  const at::Tensor x =
      make_attack(options)->perturb(problem.model, with_keys(problem.data), {.eps = 0.03});
  const at::Tensor start = (x - problem.data.x) / 0.03;
  // 288 numbers uniform in (-1, 1): the mean has a standard deviation of 0.034, the mean of squares
  // one of 0.018.
  EXPECT_NEAR(start.mean().item<double>(), 0, 0.14);
  EXPECT_NEAR((start * start).mean().item<double>(), 1.0 / 3, 0.08);
}

TEST(Pgd, AccuracyFallsWithEps) {
  const LogitsFn net = trained_net();
  const Labelled data = generated_pictures(100);
  const std::unique_ptr<Attack> pgd = make_attack(cheap_options("pgd"));
  int64_t before = num_correct(net, data.x, data.y);
  EXPECT_GT(before, 80) << "the net has learnt something";
  for (const double eps : {1.0 / 255, 4.0 / 255, 8.0 / 255, 16.0 / 255}) {
    const int64_t robust =
        num_correct(net, pgd->perturb(net, with_keys(data), pixel_threat(eps)), data.y);
    EXPECT_LT(robust, before) << eps;
    before = robust;
  }
  EXPECT_LE(before, 5) << "and a large eps breaks it";
}

}  // namespace
}  // namespace elliptical::attack::testing
