// SPDX-License-Identifier: MIT
//
// Adam against its formula in double, on every instruction set; thread counts; messages.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cmath>

#include "elliptical/ops/adam.h"
#include "tests/kernels/targets.h"
#include "tests/support/layer_cases.h"
#include "tests/support/one_thread.h"
#include "tests/support/torch_refusal.h"

namespace elliptical {
namespace {

using support::Tensors;

/// Parameters, gradients, and both moments.
struct State {
  Tensors parameters, gradients, first, second;

  State() {
    torch::manual_seed(31);
    for (const int64_t size : {0, 1, 7, 8, 17, 31, 64, 65, 70000, 131072}) {
      parameters.push_back(torch::randn({size}));
      gradients.push_back(torch::randn({size}));
      first.push_back(torch::randn({size}));
      second.push_back(torch::rand({size}) +
                       0.05);  // far from where 1 / sqrt(v) magnifies rounding
    }
  }
  void step(const ops::AdamStep& options) {
    ops::adam_step(parameters, gradients, first, second, options);
  }
};

constexpr ops::AdamStep kStep{
    .learning_rate = 1e-2, .weight_decay = 0.1, .gradient_scale = 0.5, .step = 3};

TEST(Adam, FollowsItsFormula) {
  for (const std::string& target : kernels::test::targets_under_test()) {
    const kernels::test::ForcedTarget forced(target);
    const State before;
    State after;
    after.step(kStep);
    for (size_t i = 0; i < before.parameters.size(); ++i) {
      const auto wide = [&](const Tensors& list) { return list[i].to(torch::kDouble); };
      const at::Tensor g = wide(before.gradients) * kStep.gradient_scale;
      const at::Tensor m = kStep.beta1 * wide(before.first) + (1 - kStep.beta1) * g;
      const at::Tensor v = kStep.beta2 * wide(before.second) + (1 - kStep.beta2) * g * g;
      const at::Tensor m_hat = m / (1 - std::pow(kStep.beta1, 3));
      const at::Tensor v_hat = v / (1 - std::pow(kStep.beta2, 3));
      const at::Tensor p =
          wide(before.parameters) * (1 - kStep.learning_rate * kStep.weight_decay) -
          kStep.learning_rate * m_hat / (v_hat.sqrt() + kStep.eps);
      EXPECT_TRUE(wide(after.first).allclose(m, 1e-6, 1e-7)) << i << target;
      EXPECT_TRUE(wide(after.second).allclose(v, 1e-6, 1e-7)) << i << target;
      EXPECT_TRUE(wide(after.parameters).allclose(p, 1e-6, 1e-6)) << i << target;
    }
  }
}

TEST(Adam, NormIsTheNorm) {
  for (const std::string& target : kernels::test::targets_under_test()) {
    const kernels::test::ForcedTarget forced(target);
    const State state;
    double squares = 0;
    for (const at::Tensor& g : state.gradients) {
      squares += g.to(torch::kDouble).square().sum().item<double>();
    }
    EXPECT_NEAR(ops::gradient_norm(state.gradients), std::sqrt(squares), 1e-10);
  }
  EXPECT_EQ(ops::gradient_norm({}), 0.0);
}

TEST(Adam, ThreadsDoNotChangeABit) {
  const support::ThreadCount restore;
  at::set_num_threads(1);
  State expected;
  expected.step(kStep);
  const double norm = ops::gradient_norm(expected.gradients);
  for (const int threads : {2, 3, 8}) {
    at::set_num_threads(threads);
    State state;
    state.step(kStep);
    for (size_t i = 0; i < state.parameters.size(); ++i) {
      EXPECT_TRUE(state.parameters[i].equal(expected.parameters[i])) << threads;
    }
    EXPECT_EQ(ops::gradient_norm(state.gradients), norm) << threads;
  }
}

TEST(Adam, NanPassesThrough) {
  State state;
  state.gradients.back()[3] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_TRUE(std::isnan(ops::gradient_norm(state.gradients)));
  state.step(kStep);
  EXPECT_TRUE(std::isnan(state.parameters.back()[3].item<float>()));
  EXPECT_TRUE(std::isfinite(state.parameters.back()[4].item<float>()));
}

TEST(Adam, MessagesNameTheArgument) {
  const Tensors good{torch::zeros({2, 3})};
  EXPECT_EQ(support::refusal([&] { ops::adam_step(good, {}, good, good, {}); }),
            "adam_step: gradients must be as many as parameters = 1, got 0");
  EXPECT_EQ(support::refusal([&] { ops::adam_step(good, {at::Tensor()}, good, good, {}); }),
            "adam_step: gradients[0] must be a tensor, got none");
  EXPECT_EQ(support::refusal([&] { ops::adam_step(good, {torch::zeros({3, 2})}, good, good, {}); }),
            "adam_step: gradients[0] must have its parameter's shape (2, 3), got (3, 2)");
  EXPECT_EQ(
      support::refusal([&] { ops::adam_step(good, {torch::zeros({3, 2}).t()}, good, good, {}); }),
      "adam_step: gradients[0] must be contiguous, got strides [1, 2]");
  EXPECT_EQ(support::refusal([&] { ops::adam_step(good, good, good, good, {.step = 0}); }),
            "adam_step: step must be >= 1, got 0");
  EXPECT_EQ(support::refusal([&] { ops::gradient_norm({torch::zeros({2}, torch::kDouble)}); }),
            "gradient_norm: gradients[0] must have dtype Float, got Double");
}

}  // namespace
}  // namespace elliptical
