// SPDX-License-Identifier: MIT
#include "elliptical/attack/threat.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>
#include <torch/torch.h>

#include <limits>

#include "elliptical/base/errors.h"
#include "tests/support/error_message.h"

namespace elliptical::attack {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

at::Tensor picture(const std::vector<double>& numbers, at::ScalarType dtype = at::kFloat) {
  return at::tensor(numbers, at::kDouble).to(dtype).view({1, 1, 1, -1});
}

/// The definition, number by number: the outermost floats whose distance from x is at most eps.
RC_GTEST_PROP(FeasibleSet, BoundsAreTheOutermostNumbersInTheBall, ()) {
  const double x = *rc::gen::map(rc::gen::inRange(-2'000'000, 2'000'000),
                                 [](int n) { return static_cast<double>(n) / 1'000'003; });
  const double eps = *rc::gen::map(rc::gen::inRange(0, 300'000),
                                   [](int n) { return static_cast<double>(n) / 7'000'001; });
  const FeasibleSet set(picture({x}), {.eps = eps});
  const auto clean = static_cast<double>(static_cast<float>(x));
  const auto distance = [&](float value) { return std::abs(static_cast<double>(value) - clean); };
  const float lower = set.lower.item<float>(), upper = set.upper.item<float>();
  RC_ASSERT(distance(lower) <= eps);
  RC_ASSERT(distance(upper) <= eps);
  RC_ASSERT(distance(std::nextafter(lower, -2.0f * std::abs(lower) - 1)) > eps);
  RC_ASSERT(distance(std::nextafter(upper, 2.0f * std::abs(upper) + 1)) > eps);
}

TEST(FeasibleSet, BallAndBoxAreOneClamp) {
  const at::Tensor x = picture({0.0, 0.5, 1.0, 1.8, -0.3}, at::kDouble);
  const FeasibleSet set(
      x, {.eps = 0.1, .low = at::scalar_tensor(0.0), .high = at::scalar_tensor(1.0)});
  const at::Tensor v = picture({-0.05, 0.75, 1.05, 1.75, 0.2}, at::kDouble);
  // First onto the ball, then onto the box, as the last two lie outside the box.
  const at::Tensor expected = at::clamp(at::min(at::max(v, x - 0.1), x + 0.1), 0, 1);
  EXPECT_LE((set.project(v) - expected).abs().max().item<double>(), 1e-15);
  EXPECT_LE((set.into_box(v) - at::clamp(v, 0, 1)).abs().max().item<double>(), 0);
}

TEST(FeasibleSet, BoxesMayBePerChannel) {
  const at::Tensor x = at::full({2, 3, 1, 1}, 0.5);
  const at::Tensor low = at::tensor({0.45, 0.0, 0.0}).view({3, 1, 1});
  const at::Tensor high = at::tensor({1.0, 1.0, 0.55}).view({3, 1, 1});
  const FeasibleSet set(x, {.eps = 0.25, .low = low, .high = high});
  EXPECT_TRUE(at::equal(set.lower[1].flatten(), at::tensor({0.45f, 0.25f, 0.25f})));
  EXPECT_TRUE(at::equal(set.upper[0].flatten(), at::tensor({0.75f, 0.75f, 0.55f})));
}

TEST(FeasibleSet, ACornerFollowsTheSign) {
  const FeasibleSet set(picture({0.5, 0.5, 0.5}), {.eps = 0.25});
  EXPECT_TRUE(at::equal(set.corner(picture({3, -1e-30, 0})), picture({0.75, 0.25, 0.5})));
}

TEST(FeasibleSet, WhatLiesOutsideIsSeen) {
  const FeasibleSet set(picture({0.5, 1.5}), {.eps = 0.25, .high = at::scalar_tensor(1.0)});
  const auto holds = [&](const std::vector<double>& numbers) {
    return set.holds(picture(numbers)).item<bool>();
  };
  EXPECT_TRUE(holds({0.75, 1.0}));
  EXPECT_FALSE(holds({std::nextafter(0.75f, 1.0f), 1.0}));
  EXPECT_FALSE(holds({0.5, std::nextafter(1.0f, 2.0f)})) << "in the ball, outside the box";
  EXPECT_TRUE(holds({0.5, 1.5})) << "the picture itself";
  EXPECT_FALSE(holds({std::nan(""), 1.0}));
  EXPECT_TRUE(set.in_ball(picture({0.75, 1.25})).item<bool>());
  EXPECT_FALSE(set.in_ball(picture({0.75, 1.0})).item<bool>()) << "clipped out of the ball";
}

TEST(FeasibleSet, ImpossibleThreatsAreRefused) {
  const auto refusal = [](double eps) {
    return test::error_message<ConfigError>([&] { FeasibleSet(picture({0.5}), {.eps = eps}); });
  };
  EXPECT_EQ(refusal(-0.5), "attack: eps must be finite and not negative, got -0.500000");
  EXPECT_EQ(refusal(std::nan("")), "attack: eps must be finite and not negative, got nan");
  EXPECT_EQ(refusal(kInfinity), "attack: eps must be finite and not negative, got inf");
  const Threat inverted{.low = at::scalar_tensor(1.0), .high = at::scalar_tensor(0.0)};
  EXPECT_THROW(FeasibleSet(picture({0.5}), inverted), c10::Error);
}

}  // namespace
}  // namespace elliptical::attack
