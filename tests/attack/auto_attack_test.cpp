// SPDX-License-Identifier: MIT
#include "elliptical/attack/auto_attack.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include "elliptical/base/config.h"
#include "tests/attack/small_models.h"

namespace elliptical::attack::testing {
namespace {

constexpr double kEps = 5.0 / 255;

Findings noticed_on(const LogitsFn& model,
                    const Labelled& data,
                    const std::vector<std::string>& assignments = {},
                    double eps = kEps) {
  Findings findings;
  make_attack(cheap_options("auto-attack", assignments))
      ->perturb(model, with_keys(data), pixel_threat(eps), &findings);
  return findings;
}

TEST(AutoAttack, RobustPicturesOnlyBecomeFewer) {
  const LogitsFn net = trained_net();
  const Labelled data = generated_pictures(60);
  Findings findings;
  const AutoAttack attack(cheap_options("auto-attack").get<AutoAttackOptions>());
  const at::Tensor x = attack.perturb(net, with_keys(data), pixel_threat(kEps), &findings);
  ASSERT_EQ(findings.stages.size(), 4);
  at::Tensor before = findings.robust_at_start;
  EXPECT_TRUE(at::equal(before, is_correct(plain_logits(net, data.x), data.y)));
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(findings.stages[i].attack, attack.members()[i].name);
    const at::Tensor& robust = findings.stages[i].robust;
    EXPECT_TRUE(at::equal(robust & before, robust)) << "once broken, broken for good";
    before = robust;
  }
  // What is reported is what the returned pictures show.
  EXPECT_TRUE(at::equal(before, is_correct(plain_logits(net, x), data.y)));
  EXPECT_LT(before.sum().item<int64_t>(), findings.robust_at_start.sum().item<int64_t>());
  EXPECT_GT(before.sum().item<int64_t>(), 0);

  // In turn they break at least what each breaks alone: the draws are the same.
  at::Tensor left = findings.robust_at_start;
  for (const AutoAttack::Member& member : attack.members()) {
    const at::Tensor alone = member.attack->perturb(net, with_keys(data), pixel_threat(kEps));
    left = left & is_correct(plain_logits(net, alone), data.y);
  }
  EXPECT_TRUE(at::equal(left, before)) << "robust in turn = robust to each alone";
}

TEST(AutoAttack, AHealthyModelRaisesNoFlag) {
  const Findings findings =
      noticed_on(trained_net(), generated_pictures(10), {"apgd_t.num_targets=2"});
  EXPECT_FALSE(findings.is_randomised);
  EXPECT_FALSE(findings.looks_like_probabilities);
  EXPECT_FALSE(findings.has_few_classes);
  EXPECT_EQ(findings.num_zero_gradients, 0);
}

TEST(AutoAttack, A2NoticesARandomisedModel) {
  const LogitsFn net = trained_net();
  int64_t pass = 0;
  const LogitsFn drawing = [&](const at::Tensor& x) {
    return net(x) + 0.05 * wave({x.size(0), 5}, static_cast<double>(++pass));
  };
  EXPECT_TRUE(noticed_on(drawing, generated_pictures(10)).is_randomised);
}

TEST(AutoAttack, A2NoticesProbabilities) {
  const LogitsFn net = trained_net();
  const LogitsFn softmax = [&](const at::Tensor& x) { return net(x).softmax(1); };
  EXPECT_TRUE(noticed_on(softmax, generated_pictures(10)).looks_like_probabilities);
}

TEST(AutoAttack, NoticesFewClasses) {
  const LogitsFn net = trained_net();
  const LogitsFn three = [&](const at::Tensor& x) { return net(x).narrow(1, 0, 3); };
  Labelled data = generated_pictures(15);
  data.y = plain_logits(three, data.x).argmax(1);
  const Findings findings = noticed_on(three, data);
  EXPECT_TRUE(findings.has_few_classes);
  ASSERT_EQ(findings.stages.size(), 4);
  EXPECT_TRUE(at::equal(findings.stages[0].robust, findings.stages[1].robust))
      << "apgd-t is left out";
  EXPECT_FALSE(is_possible("apgd-t", 3));
  EXPECT_TRUE(is_possible("apgd-t", 4));
  EXPECT_FALSE(is_possible("apgd-dlr", 2));
  EXPECT_TRUE(is_possible("apgd-dlr", 3) && is_possible("square", 2));
  EXPECT_TRUE(noticed_on(net, data, {"apgd_t.num_targets=9"}).has_few_classes);
}

/// A model that rounds its input away from attacks: gradients are 0 almost everywhere, and only
/// square, which does without them, breaks it.
TEST(AutoAttack, A2NoticesMaskedGradients) {
  const LogitsFn net = trained_net();
  const LogitsFn masked = [&](const at::Tensor& x) {
    return net((x * 64).round().detach() / 64 + 0 * x);
  };
  const Labelled data = generated_pictures(30);
  const Findings findings = noticed_on(masked, data, {"square.queries=300"}, 0.1);
  EXPECT_GT(findings.num_zero_gradients, 0);
  const auto robust = [&](size_t stage) {
    return findings.stages[stage].robust.sum().item<int64_t>();
  };
  EXPECT_GT(robust(2) - robust(3), 3);
  EXPECT_TRUE(square_beats_gradients(robust(2) - robust(3), 30));
  EXPECT_FALSE(square_beats_gradients(100, 50000)) << "0.2 points";
  EXPECT_TRUE(square_beats_gradients(101, 50000));
}

/// A part of the model that is detached, as a metric may be, hides gradient from the attack: it is
/// weaker than it could be.
TEST(AutoAttack, ADetachedPartMakesGradientAttacksWeaker) {
  const LogitsFn net = trained_net();
  const auto gated = [&](bool is_detached) -> LogitsFn {
    return [&net, is_detached](const at::Tensor& x) {
      at::Tensor gate = 1 + at::tanh(30 * (x - 0.5));
      if (is_detached) gate = gate.detach();
      return net(0.5 + (x - 0.5) * gate);
    };
  };
  const Labelled data = generated_pictures(100);
  const at::Tensor y = plain_logits(gated(false), data.x).argmax(1);
  const auto robust = [&](bool is_detached) {
    const at::Tensor x =
        make_attack(cheap_options("pgd"))
            ->perturb(gated(is_detached), with_keys({data.x, y}), pixel_threat(kEps));
    return num_correct(gated(false), x, y);
  };
  EXPECT_LT(robust(false), robust(true));
}

/// Pictures of a model that draws, by the mean of many passes.
TEST(AutoAttack, VersionRandSeesThroughNoise) {
  const LogitsFn net = trained_net();
  uint64_t pass = 0;
  const LogitsFn drawing = [&](const at::Tensor& x) {
    const at::Tensor noise = draw_uniform(picture_keys(RandomKey(9).derive(++pass), 0, x.size(0)),
                                          {3, 8, 8}, at::kFloat);
    return net(x + 0.3 * noise);
  };
  const Labelled data = generated_pictures(40);
  ChosenOptions rand(attack_choices(), "auto-attack");
  apply_overrides({"version=rand", "apgd.steps=10"}, fields_of(rand));
  EXPECT_EQ(rand.get<AutoAttackOptions>().apgd.eot_passes, 20);
  ChosenOptions single = rand;
  apply_overrides({"apgd.eot_passes=1"}, fields_of(single));
  Findings findings;
  const auto robust = [&](const ChosenOptions& options) {
    const at::Tensor x =
        make_attack(options)->perturb(drawing, with_keys(data), pixel_threat(kEps), &findings);
    at::Tensor z = plain_logits(drawing, x);
    for (int64_t i = 0; i < 40; ++i) z += plain_logits(drawing, x);
    return is_correct(z, data.y).sum().item<int64_t>();
  };
  EXPECT_LT(robust(rand), robust(single)) << "one noisy pass misleads";
  EXPECT_EQ(findings.stages.front().attack, "apgd-ce");
  EXPECT_EQ(findings.stages.back().attack, "apgd-dlr");
}

}  // namespace
}  // namespace elliptical::attack::testing
