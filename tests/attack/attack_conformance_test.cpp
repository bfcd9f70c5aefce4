// SPDX-License-Identifier: MIT
//
// What every attack of the table owes: the ball and the box without tolerance, the input itself for
// eps = 0, draws that belong to pictures, a model left as it was found.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "tests/attack/small_models.h"
#include "tests/support/error_message.h"
#include "tests/support/one_thread.h"

namespace elliptical::attack::testing::attack_conformance_test {
namespace {

constexpr double kEps = 6.0 / 255;

class AttackConformance : public ::testing::TestWithParam<std::string> {
 protected:
  at::Tensor attacked(const Labelled& data, const Threat& threat, uint64_t seed = 1) const {
    return attack_->perturb(net_, with_keys(data, seed), threat);
  }
  const LogitsFn net_ = trained_net();
  const std::unique_ptr<Attack> attack_ = make_attack(cheap_options(GetParam()));
};

TEST_P(AttackConformance, A1StaysInBallAndBoxWithoutTolerance) {
  const Labelled data = generated_pictures(30);
  for (const double eps : {1e-9, 1.0 / 255, kEps, 0.7}) {
    const at::Tensor x = attacked(data, pixel_threat(eps));
    EXPECT_EQ(x.sizes(), data.x.sizes());
    EXPECT_EQ(x.scalar_type(), at::kFloat);
    const at::Tensor distance = (x.to(at::kDouble) - data.x.to(at::kDouble)).abs();
    EXPECT_LE(distance.max().item<double>(), eps);
    EXPECT_GE(x.min().item<double>(), 0);
    EXPECT_LE(x.max().item<double>(), 1);
    EXPECT_FALSE(x.requires_grad());
  }
}

TEST_P(AttackConformance, DoesHarm) {
  const Labelled data = generated_pictures(40);
  const int64_t robust = num_correct(net_, attacked(data, pixel_threat(kEps)), data.y);
  EXPECT_LT(robust, num_correct(net_, data.x, data.y));
}

TEST_P(AttackConformance, A1NoEpsGivesTheInputBitForBit) {
  const Labelled data = generated_pictures(8);
  data.x.flatten()[3] = -0.0;
  const at::Tensor x = attacked(data, pixel_threat(0));
  EXPECT_TRUE(at::equal(x.view(at::kInt), data.x.view(at::kInt)));
}

TEST_P(AttackConformance, APictureDoesNotDependOnItsBatch) {
  const Labelled data = generated_pictures(12);
  const Threat threat = pixel_threat(kEps);
  const at::Tensor all = attacked(data, threat);
  for (const int64_t first : {0, 5}) {
    const Labelled part{data.x.narrow(0, first, 4), data.y.narrow(0, first, 4)};
    const at::Tensor alone = attack_->perturb(net_, with_keys(part, 1, first), threat);
    EXPECT_TRUE(at::equal(alone, all.narrow(0, first, 4))) << first;
  }
  const support::OneThread one;
  EXPECT_TRUE(at::equal(attacked(data, threat), all));
}

TEST_P(AttackConformance, IsAFunctionOfItsKeys) {
  const Labelled data = generated_pictures(30);
  const at::Tensor x = attacked(data, pixel_threat(kEps), 1);
  EXPECT_TRUE(at::equal(x, attacked(data, pixel_threat(kEps), 1)));
  const bool draws = GetParam() != "fgsm" && GetParam() != "fab-t";
  EXPECT_EQ(at::equal(x, attacked(data, pixel_threat(kEps), 2)), !draws);
}

TEST_P(AttackConformance, KnownCleanLogitsChangeNothing) {
  const Labelled data = generated_pictures(6);
  Pictures pictures = with_keys(data);
  pictures.clean_logits = plain_logits(net_, data.x);
  EXPECT_TRUE(at::equal(attack_->perturb(net_, pictures, pixel_threat(kEps)),
                        attacked(data, pixel_threat(kEps))));
}

TEST_P(AttackConformance, CountsItsPassesAtMost) {
  const Labelled data = generated_pictures(6);
  int64_t num_pictures = 0;
  const LogitsFn counting = [&](const at::Tensor& x) {
    num_pictures += x.size(0);
    return net_(x);
  };
  Pictures pictures = with_keys(data);
  pictures.clean_logits = plain_logits(net_, data.x);
  attack_->perturb(counting, pictures, pixel_threat(1.0 / 255));
  EXPECT_GT(num_pictures, 0);
  EXPECT_LE(num_pictures, 6 * attack_->max_passes(5));
}

TEST_P(AttackConformance, LeavesTheModelAndTheInputAsFound) {
  const at::Tensor W = wave({5, 3, 8, 8}).requires_grad_(true);
  W.mutable_grad() = at::full_like(W, 3);
  const LogitsFn model = linear_model(W, at::zeros({5}));
  const Labelled data = generated_pictures(6);
  const at::Tensor before = data.x.clone();
  EXPECT_TRUE(at::GradMode::is_enabled());
  attack_->perturb(model, with_keys(data), pixel_threat(kEps));
  EXPECT_TRUE(at::GradMode::is_enabled());
  EXPECT_TRUE(W.requires_grad());
  EXPECT_TRUE((W.grad() == 3).all().item<bool>());
  EXPECT_TRUE(at::equal(data.x, before));
  EXPECT_FALSE(data.x.requires_grad());
}

TEST_P(AttackConformance, WhatTheModelThrowsComesThrough) {
  int64_t num_passes = 0;
  const LogitsFn stopping = [&](const at::Tensor& x) {
    if (++num_passes == 2) throw std::runtime_error("stop");
    return net_(x);
  };
  EXPECT_EQ(test::error_message<std::runtime_error>([&] {
              attack_->perturb(stopping, with_keys(generated_pictures(4)), pixel_threat(kEps));
            }),
            "stop");
  EXPECT_EQ(num_passes, 2);
}

/// The published set-up clips pictures that lie outside the box.
TEST_P(AttackConformance, PicturesOutsideTheBoxAreClippedOrLeft) {
  const LogitsFn wide = [&](const at::Tensor& x) { return net_(x / 4 + 0.5); };
  const Labelled data = generated_pictures(20);
  const Labelled outside{(data.x - 0.5) * 4, data.y};
  const at::Tensor x = attack_->perturb(wide, with_keys(outside), pixel_threat(kEps));
  const at::Tensor changed = (x != outside.x).flatten(1).any(1);
  const at::Tensor in_box = ((x >= 0) & (x <= 1)).flatten(1).all(1);
  EXPECT_TRUE(at::equal(changed & in_box, changed));
}

TEST_P(AttackConformance, WorksWithoutABoxAndInDouble) {
  const Labelled data = generated_pictures(6, at::kDouble);
  const at::Tensor x = make_attack(cheap_options(GetParam()))
                           ->perturb(trained_net(at::kDouble), with_keys(data), {.eps = kEps});
  EXPECT_EQ(x.scalar_type(), at::kDouble);
  EXPECT_LE((x - data.x).abs().max().item<double>(), kEps);
}

TEST_P(AttackConformance, AnEmptyBatchStaysEmpty) {
  EXPECT_EQ(
      attacked({at::empty({0, 3, 8, 8}), at::empty({0}, at::kLong)}, pixel_threat(kEps)).sizes(),
      (at::IntArrayRef{0, 3, 8, 8}));
}

TEST_P(AttackConformance, WrongInputIsRefusedByName) {
  const Labelled good = generated_pictures(4);
  const auto refusal = [&](const Labelled& data, const LogitsFn& model) {
    return test::error_message<c10::Error>(
        [&] { attack_->perturb(model, with_keys(data), pixel_threat(kEps)); });
  };
  const auto contains = [](const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos ? ::testing::AssertionSuccess()
                                                : ::testing::AssertionFailure() << text;
  };
  EXPECT_TRUE(contains(refusal({good.x.flatten(1), good.y}, net_),
                       "attack: pictures must be (B, C, H, W) floats, got [4, 192]"));
  EXPECT_TRUE(contains(refusal({good.x, good.y.narrow(0, 0, 3)}, net_),
                       "attack: labels must be (B) = (4) int64, got [3]"));
  EXPECT_TRUE(
      contains(refusal({good.x, good.y + 7}, net_), "attack: labels must be in 0..4, got 7 to 10"));
  EXPECT_TRUE(contains(refusal({good.x / 0, good.y}, net_), "attack: pictures must be finite"));
  const LogitsFn broken = [&](const at::Tensor& x) { return net_(x) / 0; };
  EXPECT_TRUE(contains(refusal(good, broken),
                       "attack: logits of clean pictures must be finite, got nan or inf"));
  Pictures few = with_keys(good);
  few.keys.pop_back();
  EXPECT_TRUE(contains(
      test::error_message<c10::Error>([&] { attack_->perturb(net_, few, pixel_threat(kEps)); }),
      "attack: there must be one key a picture, got 3 for 4"));
}

std::vector<std::string> names() {
  std::vector<std::string> result;
  for (const AttackEntry& entry : attack_table()) result.emplace_back(entry.name);
  return result;
}

INSTANTIATE_TEST_SUITE_P(Table,
                         AttackConformance,
                         ::testing::ValuesIn(names()),
                         [](const auto& attack) {
                           std::string name = attack.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

/// An attack that does what no attack may.
class Cheater : public Attack {
 public:
  explicit Cheater(double factor) : factor_(factor) {}
  int64_t max_passes(int64_t) const override { return 0; }

 protected:
  at::Tensor search(const Problem& problem) const override {
    return problem.set.x + factor_ * problem.set.threat.eps;
  }

 private:
  double factor_;
};

TEST(Attack, A1AFaultOfAnAttackIsNoticed) {
  const LogitsFn net = trained_net();
  for (const double factor : {1.01, std::nan("")}) {
    const std::string message = test::error_message<c10::Error>(
        [&] { Cheater(factor).perturb(net, with_keys(generated_pictures(2)), {.eps = 0.25}); });
    EXPECT_NE(message.find("attack: adversarial pictures must lie within eps = 0.25"),
              std::string::npos)
        << message;
  }
}

}  // namespace
}  // namespace elliptical::attack::testing::attack_conformance_test
