// SPDX-License-Identifier: MIT
//
// Bias, ReLU and dropout against their reference with error bounds; gradients of the reference
// against differences.
#include "elliptical/kernels/bias_relu_dropout.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "elliptical/kernels/bias_relu_dropout_reference.h"
#include "tests/kernels/differences.h"
#include "tests/kernels/floats.h"
#include "tests/kernels/layer_sizes.h"
#include "tests/kernels/on_every_target.h"
#include "tests/kernels/same_bits.h"

namespace elliptical::kernels::test {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

TEST(BiasReluDropout, MatchesTheReference) {
  on_every_target([] {
    for (uint64_t seed = 0; seed < kLayerCases && !testing::Test::HasFailure(); ++seed) {
      Random random(seed);
      const Rows size = random_rows(random);
      const ElementDropout dropout = random_dropout(random);
      const int64_t count = size.rows * size.C;
      const Floats x = Floats::normal(count, random), bias = Floats::normal(size.C, random),
                   dy = Floats::normal(count, random);
      const std::string what = describe(seed, size, dropout);

      const bool is_in_place = random.chance(0.3), wants_bias = random.chance(0.8);
      Floats y = is_in_place ? x : Floats(count);
      bias_relu_dropout_forward(size, is_in_place ? y.data() : x.data(), bias.data(), dropout,
                                y.data(), serial_for);
      std::vector<Bounded> exact(static_cast<size_t>(count));
      bias_relu_dropout_reference_forward(size, x.as<Bounded>().data(), bias.as<Bounded>().data(),
                                          dropout, exact.data());
      expect_within(y, exact, what + ": y");

      Floats dx = is_in_place ? dy : Floats(count), d_bias(size.C);
      bias_relu_dropout_backward(size, is_in_place ? dx.data() : dy.data(), y.data(), dropout,
                                 dx.data(), wants_bias ? d_bias.data() : nullptr, serial_for);
      std::vector<Bounded> exact_bias(static_cast<size_t>(size.C));
      bias_relu_dropout_reference_backward(size, dy.as<Bounded>().data(), y.as<Bounded>().data(),
                                           dropout, exact.data(), exact_bias.data());
      expect_within(dx, exact, what + ": dx");
      if (wants_bias) expect_within(d_bias, exact_bias, what + ": d_bias");
    }
  });
}

TEST(BiasReluDropout, ReferenceGradientMatchesDifferences) {
  Random random(1);
  const Rows size{4, 7};
  const ElementDropout dropout(0.3, 5);
  const auto forward = [&](const Inputs& in) {
    std::vector<double> y(28);
    bias_relu_dropout_reference_forward(size, in[0].data(), in[1].data(), dropout, y.data());
    return y;
  };
  const Inputs in = normal_inputs({28, 7}, random);
  const std::vector<double> y = forward(in), dy = normal_inputs({28}, random)[0];
  Inputs gradients = {std::vector<double>(28), std::vector<double>(7)};
  bias_relu_dropout_reference_backward(size, dy.data(), y.data(), dropout, gradients[0].data(),
                                       gradients[1].data());
  expect_gradients_match_differences(forward, in, dy, gradients);
}

TEST(BiasReluDropout, BackwardDropsWhatForwardDropped) {
  on_every_target([] {
    for (uint64_t seed = 0; seed < kLayerCases / 10; ++seed) {
      Random random(seed);
      const Rows size{1 + random.below(40), random.pick(kWidths)};
      const int64_t count = size.rows * size.C;
      const ElementDropout dropout = ElementDropout(0.4, random.bits()).from(random.below(500));
      const Floats x(count, 1.0f), bias(size.C, 0.5f);
      Floats y(count), dx(count);
      bias_relu_dropout_forward(size, x.data(), bias.data(), dropout, y.data(), serial_for);
      bias_relu_dropout_backward(size, x.data(), y.data(), dropout, dx.data(), nullptr, serial_for);
      for (int64_t i = 0; i < count; ++i) {
        ASSERT_EQ(y[i] != 0, dropout.keeps(i)) << "case " << seed << " element " << i;
        ASSERT_EQ(dx[i] != 0, dropout.keeps(i)) << "case " << seed << " element " << i;
      }
    }
  });
}

TEST(BiasReluDropout, NanPassesBothWays) {
  on_every_target([] {
    const Rows size{3, 21};
    for (const ElementDropout& dropout : {ElementDropout(), ElementDropout(0.5, 3)}) {
      for (const int64_t bad : {0, 20, 21, 40, 62}) {
        Floats x(63, 1.0f), y(63), dx(63), d_bias(21);
        const Floats bias(21, -2.0f), dy(63, 1.0f);
        x[bad] = kNan;
        bias_relu_dropout_forward(size, x.data(), bias.data(), dropout, y.data(), serial_for);
        bias_relu_dropout_backward(size, dy.data(), y.data(), dropout, dx.data(), d_bias.data(),
                                   serial_for);
        for (int64_t i = 0; i < 63; ++i) {
          ASSERT_EQ(std::isnan(y[i]), i == bad);
          ASSERT_TRUE(i == bad || dx[i] == 0.0f);
        }
        x[bad] = 1.0f;
        Floats nan_above(63, 1.0f), open(63, 1.0f);
        nan_above[bad] = kNan;
        bias_relu_dropout_backward(size, nan_above.data(), open.data(), dropout, dx.data(),
                                   d_bias.data(), serial_for);
        for (int64_t i = 0; i < 63; ++i) ASSERT_EQ(std::isnan(dx[i]), i == bad);
        for (int64_t c = 0; c < 21; ++c) ASSERT_EQ(std::isnan(d_bias[c]), c == bad % 21);
      }
    }
  });
}

TEST(BiasReluDropout, SameBitsForAnySchedule) {
  on_every_target([] {
    Random random(4);
    const Rows size = kRowsOfSeveralTasks;
    const ElementDropout dropout(0.3, 6);
    const Floats x = Floats::normal(size.rows * size.C, random),
                 bias = Floats::normal(size.C, random);
    expect_same_for_any_schedule([&](const ParallelFor& threads) {
      std::vector<Floats> out = {Floats(x.size()), Floats(x.size()), Floats(size.C)};
      bias_relu_dropout_forward(size, x.data(), bias.data(), dropout, out[0].data(), threads);
      bias_relu_dropout_backward(size, x.data(), out[0].data(), dropout, out[1].data(),
                                 out[2].data(), threads);
      return out;
    });
  });
}

}  // namespace
}  // namespace elliptical::kernels::test
