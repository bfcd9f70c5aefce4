// SPDX-License-Identifier: MIT
#include "elliptical/attack/apgd.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include "elliptical/attack/apgd_impl.h"
#include "elliptical/base/errors.h"
#include "tests/attack/small_models.h"
#include "tests/support/error_message.h"

namespace elliptical::attack::testing::apgd_test {
namespace {

constexpr double kEps = 4.0 / 255;

/// A run over generated pictures, with everything that its state showed.
struct Watched {
  explicit Watched(const ApgdOptions& options, const ApgdLoss& loss) {
    Pictures pictures = with_keys(generated_pictures(20, at::kDouble));
    pictures.clean_logits = plain_logits(net, pictures.x);
    const FeasibleSet set(pictures.x, pixel_threat(kEps));
    const Problem problem{net, pictures, set, findings};
    const at::NoGradGuard no_grad;
    result = run_apgd(problem, loss, (pictures.y + 1) % 5, pictures.keys, options,
                      [&](int64_t, const ApgdState& state) { states.push_back(state); });
    lower = set.lower;
    upper = set.upper;
  }
  LogitsFn net = trained_net(at::kDouble);
  Findings findings;
  Attempt result;
  at::Tensor lower, upper;
  std::vector<ApgdState> states;
};

ApgdOptions all_steps(int64_t steps = 100) {
  ApgdOptions options;
  options.steps = steps;
  options.stop_when_broken = false;
  return options;
}

ApgdLoss entropy() {
  return [](const at::Tensor& z, const at::Tensor& y, const at::Tensor&) {
    return cross_entropy(z, y);
  };
}

TEST(Apgd, Checkpoints) {
  EXPECT_EQ(apgd_checkpoints(100), (std::vector<int64_t>{22, 41, 57, 70, 80, 87, 93, 99}));
  EXPECT_EQ(apgd_checkpoints(50), (std::vector<int64_t>{11, 21, 30, 38, 45}));
  const std::vector<int64_t> twenty = {4, 7, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20};
  EXPECT_EQ(apgd_checkpoints(20), twenty);
  EXPECT_EQ(apgd_checkpoints(1), std::vector<int64_t>{1});
}

TEST(Apgd, TheBestLossNeverFallsAndStepsAreHalvedAtCheckpoints) {
  for (const ApgdLoss& loss : {entropy(), ApgdLoss(targeted_dlr)}) {
    const Watched run(all_steps(), loss);
    ASSERT_EQ(run.states.size(), 101);
    const std::vector<int64_t> checkpoints = apgd_checkpoints(100);
    bool any_halved = false;
    for (size_t i = 1; i < run.states.size(); ++i) {
      const ApgdState &now = run.states[i], &before = run.states[i - 1];
      EXPECT_TRUE((now.best_loss >= before.best_loss).all().item<bool>());
      EXPECT_TRUE(at::equal(now.best_loss, at::maximum(before.best_loss, now.loss)));
      const bool is_checkpoint = std::count(checkpoints.begin(), checkpoints.end(), i) > 0;
      const at::Tensor ratio = now.step / before.step;
      if (is_checkpoint) {
        EXPECT_TRUE(((ratio == 1) | (ratio == 0.5)).all().item<bool>());
        any_halved |= (ratio == 0.5).any().item<bool>();
        // Where the step was halved the run goes back to the best iterate.
        const at::Tensor halved = now.was_halved.nonzero().squeeze(1);
        EXPECT_TRUE(at::equal(now.x.index_select(0, halved), now.best_x.index_select(0, halved)));
      } else {
        EXPECT_TRUE((ratio == 1).all().item<bool>());
      }
    }
    EXPECT_TRUE(any_halved);
    const at::Tensor halvings = (run.states.front().step / run.states.back().step).log2();
    EXPECT_TRUE((halvings == halvings.round()).all().item<bool>());
    EXPECT_LE(halvings.max().item<double>(), 8);
    EXPECT_EQ(run.states.front().step.max().item<double>(), 2 * kEps);
  }
}

TEST(Apgd, TheFirstStepIsPlain) {
  const Watched run(all_steps(1), entropy());
  const ApgdState& start = run.states[0];
  const at::Tensor expected =
      at::clamp(start.x + 2 * kEps * start.gradient.sign(), run.lower, run.upper);
  EXPECT_TRUE(at::equal(run.states[1].x_old, start.x));
  // After one step there is a checkpoint, which may go back; x of the step is best_x or x.
  EXPECT_TRUE(
      at::equal(at::where((run.states[1].loss == run.states[1].best_loss).view({-1, 1, 1, 1}),
                          run.states[1].best_x, expected),
                expected));
  const Watched longer(all_steps(10), entropy());  // first checkpoint after 2 steps
  EXPECT_TRUE(at::equal(longer.states[1].x, expected));
}

TEST(Apgd, StartsOnTheEdgeOfTheBall) {
  const Watched run(all_steps(1), entropy());
  const at::Tensor x = generated_pictures(20, at::kDouble).x;
  const at::Tensor inside = ((x > kEps) & (x < 1 - kEps)).flatten(1).all(1);
  const at::Tensor length = (run.states[0].x - x).abs().flatten(1).amax(1);
  EXPECT_GT(inside.sum().item<int64_t>(), 0);
  EXPECT_LE((length - kEps).masked_select(inside).abs().max().item<double>(), 1e-15);
}

/// The rule of the checkpoints, written down again for one picture at a time.
TEST(Apgd, HalvesWhereTheRuleSays) {
  const Watched run(all_steps(), entropy());
  const std::vector<int64_t> checkpoints = apgd_checkpoints(100);
  for (int64_t picture = 0; picture < 20; ++picture) {
    const auto loss = [&](int64_t i) { return run.states[i].loss[picture].item<double>(); };
    const auto best = [&](int64_t i) { return run.states[i].best_loss[picture].item<double>(); };
    bool was_halved = true;
    int64_t last = 0;
    for (const int64_t at : checkpoints) {
      int64_t num_up = 0;
      for (int64_t i = last + 1; i <= at; ++i) num_up += loss(i) > (i == 1 ? 0 : loss(i - 1));
      const bool seldom = static_cast<double>(num_up) <= 0.75 * static_cast<double>(at - last);
      const bool no_gain = !was_halved && best(last) >= best(at);
      was_halved = seldom || no_gain;
      EXPECT_EQ(run.states[at].was_halved[picture].item<bool>(), was_halved)
          << picture << " " << at;
      last = at;
    }
  }
}

TEST(Apgd, StoppingEarlyBreaksTheSamePictures) {
  ApgdOptions stopping = all_steps();
  stopping.stop_when_broken = true;
  const Watched all(all_steps(), entropy()), early(stopping, entropy());
  EXPECT_TRUE(at::equal(all.result.broken, early.result.broken));
  const int64_t num_broken = all.result.broken.sum().item<int64_t>();
  EXPECT_GT(num_broken, 0);
  EXPECT_LT(num_broken, 20);
  EXPECT_LT(early.states.back().place.numel(), 20) << "broken pictures are left alone";
  // What comes back is misclassified.
  const at::Tensor y = generated_pictures(20, at::kDouble).y;
  for (const Watched* run : {&all, &early}) {
    const at::Tensor wrong = is_correct(plain_logits(run->net, run->result.x), y).logical_not();
    EXPECT_TRUE(at::equal(wrong & run->result.broken, run->result.broken));
  }
}

TEST(Apgd, FewClassesAreRefusedByName) {
  const LogitsFn two = linear_model(wave({2, 3, 8, 8}), at::zeros({2}));
  Labelled data = generated_pictures(4);
  data.y = data.y % 2;
  for (const auto& [name, least] : {std::pair{"apgd-dlr", "3"}, {"apgd-t", "4"}}) {
    EXPECT_EQ(
        test::error_message<ConfigError>([&, attack = std::string(name)] {
          make_attack(cheap_options(attack))->perturb(two, with_keys(data), pixel_threat(0.1));
        }),
        "attack " + std::string(name) + ": needs a model of at least " + least +
            " classes, this one has 2 (use apgd-ce)");
  }
}

}  // namespace
}  // namespace elliptical::attack::testing::apgd_test
