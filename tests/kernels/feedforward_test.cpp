// SPDX-License-Identifier: MIT
//
// Bias, ReLU, dropout and embeddings against their references with error bounds; the mask as a
// function of seed and place; gradients of the references against differences.
#include "elliptical/kernels/feedforward.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "elliptical/kernels/feedforward_reference.h"
#include "tests/kernels/differences.h"
#include "tests/kernels/floats.h"
#include "tests/kernels/layer_sizes.h"
#include "tests/kernels/on_every_target.h"
#include "tests/kernels/threads.h"

namespace elliptical::kernels::test::feedforward_test {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

std::string describe(uint64_t seed, Rows size, const ElementDropout& dropout) {
  return "case " + std::to_string(seed) + ", rows " + std::to_string(size.rows) + ", C " +
         std::to_string(size.C) + ", threshold " + std::to_string(dropout.threshold) + ", offset " +
         std::to_string(dropout.offset);
}

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

TEST(Embed, MatchesTheReference) {
  on_every_target([] {
    for (uint64_t seed = 0; seed < kLayerCases && !testing::Test::HasFailure(); ++seed) {
      Random random(seed);
      const Rows size = random_rows(random);
      const int64_t V = 1 + random.below(9), N = 1 + random.below(8);
      const Floats table = Floats::normal(V * size.C, random),
                   positions = Floats::normal(N * size.C, random);
      std::vector<int64_t> tokens;
      for (int64_t r = 0; r < size.rows; ++r) tokens.push_back(random.below(V));
      const ElementDropout dropout = random_dropout(random);
      const double scale = random.normal();
      Floats y(size.rows * size.C);
      embed_forward(size, {table.data(), tokens.data(), positions.data(), N, scale, dropout},
                    y.data(), serial_for);
      const auto exact_table = table.as<Bounded>(), exact_positions = positions.as<Bounded>();
      std::vector<Bounded> exact(static_cast<size_t>(size.rows * size.C));
      embed_reference_forward(size,
                              EmbedInputs<Bounded>{exact_table.data(), tokens.data(),
                                                   exact_positions.data(), N, scale, dropout},
                              exact.data());
      expect_within(y, exact, describe(seed, size, dropout));
    }
  });
}

TEST(ScaledDropout, MatchesTheReference) {
  constexpr int64_t counts[] = {0, 1, 7, 8, 9, 63, 64, 65, 333, 4095, 4096, 4097, 9000};
  on_every_target([&] {
    for (uint64_t seed = 0; seed < kLayerCases / 5 && !testing::Test::HasFailure(); ++seed) {
      Random random(seed);
      const int64_t count = random.pick(counts);
      const ElementDropout dropout = random_dropout(random);
      const Floats x = Floats::normal(count, random);
      const double factor = random.normal();
      const bool is_in_place = random.chance(0.5);
      Floats y = is_in_place ? x : Floats(count);
      scaled_dropout(count, is_in_place ? y.data() : x.data(), factor, dropout, y.data(),
                     serial_for);
      std::vector<Bounded> exact(static_cast<size_t>(count));
      scaled_dropout_reference(count, x.as<Bounded>().data(), factor, dropout, exact.data());
      expect_within(y, exact, describe(seed, {1, count}, dropout));
    }
  });
}

/// Which of `count` elements a rule keeps, as the kernel of the target in use draws it.
std::vector<bool> kept(int64_t count, const ElementDropout& dropout) {
  const Floats ones(count, 1.0f);
  Floats y(count);
  scaled_dropout(count, ones.data(), 1.0, dropout, y.data(), serial_for);
  std::vector<bool> result;
  for (const float value : y) result.push_back(value != 0);
  return result;
}

TEST(ScaledDropout, MaskIsTheRulesOnEveryTarget) {
  on_every_target([] {
    for (const int64_t first : {int64_t{0}, int64_t{77}, (int64_t{1} << 32) * 64 - 70,
                                (int64_t{1} << 50) + 5}) {  // the block's number passes 32 bits
      const ElementDropout dropout = ElementDropout(0.37, 0xFEDCBA9876543210u).from(first);
      const std::vector<bool> mask = kept(300, dropout);
      for (int64_t i = 0; i < 300; ++i) ASSERT_EQ(mask[i], dropout.keeps(i)) << first << " " << i;
    }
  });
}

TEST(ScaledDropout, KeepsTheShareAskedForAndTheMean) {
  constexpr int64_t count = 1 << 18;
  on_every_target([] {
    for (const double p : {0.01, 0.1, 0.5, 0.9}) {
      const std::vector<bool> mask = kept(count, ElementDropout(p, 99));
      const auto share =
          static_cast<double>(std::count(mask.begin(), mask.end(), true)) / double{count};
      EXPECT_NEAR(share, 1 - p, 5 * std::sqrt(p * (1 - p) / count));  // 5 sigma
    }
    // With p = 1/2 neighbours, rows below each other and other seeds agree half of the time.
    const std::vector<bool> mask = kept(count, ElementDropout(0.5, 42)),
                            other = kept(count, ElementDropout(0.5, 43)),
                            high = kept(count, ElementDropout(0.5, 42 + (uint64_t{1} << 32)));
    for (const int64_t distance : {1, 8, 16, 64, 1024}) {
      int64_t agree = 0;
      for (int64_t i = distance; i < count; ++i) agree += mask[i] == mask[i - distance];
      EXPECT_NEAR(agree, (count - distance) / 2.0, 2.5 * std::sqrt(count)) << distance;
    }
    for (const std::vector<bool>& another : {other, high}) {
      int64_t agree = 0;
      for (int64_t i = 0; i < count; ++i) agree += mask[i] == another[i];
      EXPECT_NEAR(agree, count / 2.0, 2.5 * std::sqrt(count));
    }
  });
}

TEST(ScaledDropout, PartsOfATensorDrawItsMask) {
  on_every_target([] {
    const ElementDropout dropout(0.5, 8);
    const std::vector<bool> whole = kept(1000, dropout);
    for (const int64_t first : {1, 15, 16, 63, 64, 65, 500}) {
      const std::vector<bool> part = kept(1000 - first, dropout.from(first));
      EXPECT_TRUE(std::equal(part.begin(), part.end(), whole.begin() + first)) << first;
    }
  });
}

TEST(Feedforward, SameBitsForAnySchedule) {
  on_every_target([] {
    Random random(4);
    const Rows size{1003, 67};  // several tasks
    const int64_t count = size.rows * size.C;
    const ElementDropout dropout(0.3, 6);
    const Floats x = Floats::normal(count, random), bias = Floats::normal(size.C, random),
                 table = Floats::normal(5 * size.C, random);
    std::vector<int64_t> tokens;
    for (int64_t r = 0; r < size.rows; ++r) tokens.push_back(random.below(5));
    const auto run = [&](const ParallelFor& threads) {
      std::vector<Floats> out = {Floats(count), Floats(count), Floats(size.C), Floats(count),
                                 Floats(count)};
      bias_relu_dropout_forward(size, x.data(), bias.data(), dropout, out[0].data(), threads);
      bias_relu_dropout_backward(size, x.data(), out[0].data(), dropout, out[1].data(),
                                 out[2].data(), threads);
      embed_forward(size, {table.data(), tokens.data(), table.data(), 3, 1.7, dropout},
                    out[3].data(), threads);
      scaled_dropout(count, x.data(), 0.3, dropout, out[4].data(), threads);
      return out;
    };
    const std::vector<Floats> expected = run(serial_for);
    on_every_schedule([&](const ParallelFor& threads) {
      const std::vector<Floats> got = run(threads);
      for (size_t i = 0; i < got.size(); ++i) expect_same_bits(got[i], expected[i], "schedule");
    });
  });
}

}  // namespace
}  // namespace elliptical::kernels::test::feedforward_test
