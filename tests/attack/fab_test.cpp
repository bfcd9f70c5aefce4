// SPDX-License-Identifier: MIT
#include "elliptical/attack/fab.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>
#include <torch/torch.h>

#include <limits>

#include "elliptical/attack/hyperplane_impl.h"
#include "tests/attack/small_models.h"

namespace elliptical::attack::testing {
namespace {

/// The problem by brute force: for a step of length lambda each coordinate goes as far as it may
/// towards the plane; the least lambda that reaches it is a zero of a function that is linear
/// between the lengths at which a coordinate meets the box.
double shortest_step(const std::vector<double>& t, const std::vector<double>& w, double b) {
  const auto after = [&](double lambda) {  // <w, t + d> - b
    double value = -b;
    for (size_t i = 0; i < t.size(); ++i) {
      double start = 0;
      for (size_t j = 0; j < t.size(); ++j) start += w[j] * t[j];
      const double towards = start >= b ? -1 : 1;
      const double moved = w[i] == 0 ? t[i] : t[i] + towards * (w[i] > 0 ? 1 : -1) * lambda;
      value += w[i] * std::min(std::max(moved, 0.0), 1.0);
    }
    return value;
  };
  const double start = after(0);
  std::vector<double> lengths = {0};
  for (const double x : t) lengths.insert(lengths.end(), {x, 1 - x});
  std::sort(lengths.begin(), lengths.end());
  for (size_t i = 1; i < lengths.size(); ++i) {
    const double low = after(lengths[i - 1]), high = after(lengths[i]);
    if (high * start <= 0) {
      return low == high ? lengths[i - 1]
                         : lengths[i - 1] + (lengths[i] - lengths[i - 1]) * low / (low - high);
    }
  }
  return std::numeric_limits<double>::infinity();
}

RC_GTEST_PROP(StepToHyperplane, IsTheShortestOfBruteForce, ()) {
  const auto numbers = [](int low, int high) {
    return *rc::gen::container<std::vector<double>>(
        5, rc::gen::map(rc::gen::inRange(low, high + 1),
                        [](int n) { return static_cast<double>(n) / 20; }));
  };
  const std::vector<double> t = numbers(0, 20), w = numbers(-20, 20);
  const double b = static_cast<double>(*rc::gen::inRange(-60, 60)) / 20;
  const at::Tensor point = at::tensor(t, at::kDouble).view({1, 5});
  const at::Tensor normal = at::tensor(w, at::kDouble).view({1, 5});
  const at::Tensor d = step_to_hyperplane(point, normal, at::tensor({b}, at::kDouble),
                                          at::scalar_tensor(0.0), at::scalar_tensor(1.0));
  const at::Tensor end = point + d;
  const double rest = (normal * end).sum().item<double>() - b;
  const double length = d.abs().max().item<double>();
  RC_ASSERT((end >= -1e-12).all().item<bool>() && (end <= 1 + 1e-12).all().item<bool>());
  RC_ASSERT((d.masked_select(normal == 0) == 0).all().item<bool>());
  const double expected = shortest_step(t, w, b);
  if (std::isinf(expected)) {  // every coordinate at its wall, on the same side as before
    const double before = (normal * point).sum().item<double>() - b;
    RC_ASSERT(rest * before > -1e-12);
    const at::Tensor wall =
        (normal > 0).logical_xor(at::scalar_tensor(before >= 0)).to(at::kDouble);
    RC_ASSERT(((end - wall).abs() * normal.abs()).max().item<double>() <= 1e-12);
  } else {
    RC_ASSERT(std::abs(rest) <= 1e-12);
    RC_ASSERT(std::abs(length - expected) <= 1e-12);
  }
}

TEST(StepToHyperplane, WithoutABoxIsTheDistanceInTheMaximumNorm) {
  const at::Tensor t = wave({7, 300}, 0.1), w = wave({7, 300}, 0.8), b = wave({7}, 2.0);
  const at::Tensor d = step_to_hyperplane(t, w, b, std::nullopt, std::nullopt);
  const at::Tensor expected = ((w * t).sum(1) - b).abs() / w.abs().sum(1);
  EXPECT_LE((d.abs().amax(1) - expected).abs().max().item<double>(), 1e-6);
  EXPECT_LE(((w * (t + d)).sum(1) - b).abs().max().item<double>(), 1e-4) << "sums of 300 floats";
}

TEST(Fab, FindsTheDistanceToALinearBoundary) {
  const at::Tensor W = wave({2, 3, 6, 6}, 0.4, at::kDouble);
  const LogitsFn model = linear_model(W, at::zeros({2}, at::kDouble));
  const at::Tensor x = 0.5 + 0.05 * wave({10, 3, 6, 6}, 0.9, at::kDouble);  // far from the box
  Pictures pictures = with_keys({x, plain_logits(model, x).argmax(1)});
  pictures.clean_logits = plain_logits(model, x);
  Findings findings;
  const Problem problem{model, pictures, FeasibleSet(x, pixel_threat(1e-9)), findings};
  const at::NoGradGuard no_grad;
  const Nearest nearest = find_nearest(problem, 1 - pictures.y, FabOptions());
  const at::Tensor exact = margin(pictures.clean_logits, pictures.y) / (W[0] - W[1]).abs().sum();
  const at::Tensor ratio = nearest.distance / exact;
  EXPECT_GE(ratio.min().item<double>(), 1.0) << "nothing is nearer than the boundary";
  EXPECT_LE(ratio.max().item<double>(), 1.05);
  EXPECT_LE(ratio.mean().item<double>(), 1.01) << "0.5 % is usual";
}

TEST(Fab, AcceptsOnlyWhatLiesWithinEps) {
  const LogitsFn net = trained_net();
  const Labelled data = generated_pictures(60);
  const double eps = 4.0 / 255;
  const at::Tensor clean = plain_logits(net, data.x);
  const std::unique_ptr<Attack> fab = make_attack(cheap_options("fab-t", {"num_targets=4"}));
  const at::Tensor x = fab->perturb(net, with_keys(data), pixel_threat(eps));
  const at::Tensor changed = (x != data.x).flatten(1).any(1);
  const at::Tensor wrong = is_correct(plain_logits(net, x), data.y).logical_not();
  EXPECT_TRUE(at::equal(changed & wrong, changed)) << "what changed is misclassified";
  EXPECT_GT(changed.sum().item<int64_t>(), 0);
  EXPECT_FALSE((changed & is_correct(clean, data.y).logical_not()).any().item<bool>())
      << "what was wrong before is left alone";
  // With time to look for nearer ones the same pictures break.
  const at::Tensor patient =
      make_attack(cheap_options("fab-t", {"num_targets=4", "stop_when_broken=false"}))
          ->perturb(net, with_keys(data), pixel_threat(eps));
  EXPECT_EQ(num_correct(net, patient, data.y), num_correct(net, x, data.y));
  const auto distance = [&](const at::Tensor& v) {
    return (v - data.x).abs().sum().item<double>();
  };
  EXPECT_LT(distance(patient), distance(x));
}

/// As in the published set-up: pictures outside the box are clipped far out of the ball, and what
/// is found there does not count.
TEST(Fab, RejectsWhatTheBoxClippedOutOfTheBall) {
  const LogitsFn net = trained_net();
  const Labelled data = generated_pictures(30);
  const LogitsFn shifted = [&](const at::Tensor& x) { return net(x / 4 - 0.125); };
  const Labelled outside{data.x * 4 + 0.5, data.y};  // in [0.5, 4.5]
  const at::Tensor x = make_attack(cheap_options("fab-t"))
                           ->perturb(shifted, with_keys(outside), pixel_threat(1.0 / 255));
  EXPECT_TRUE(at::equal(x, outside.x));
}

}  // namespace
}  // namespace elliptical::attack::testing
