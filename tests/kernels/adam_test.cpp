// SPDX-License-Identifier: MIT
//
// Adam against its formula on random arrays and factors, against the textbook over many steps, and
// what its parts promise one by one; the sum of squares, which clips its gradients.
#include "elliptical/kernels/adam.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numeric>

#include "elliptical/kernels/adam_reference.h"
#include "tests/kernels/floats.h"
#include "tests/kernels/on_every_target.h"
#include "tests/kernels/threads.h"

namespace elliptical::kernels::test::adam_test {
namespace {

constexpr int kRandomCases = kSanitized ? 300 : 3000;
constexpr int64_t kSizes[] = {0, 1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65};
/// Around the pieces that tasks are made of.
const std::vector<int64_t> kManyPieces = {0, 65535, 65536, 65537, 1, 140000};

struct State {
  std::vector<Floats> parameter, gradient, first, second;

  State(const std::vector<int64_t>& sizes, Random& random) {
    for (const int64_t size : sizes) {
      parameter.push_back(Floats::normal(size, random));
      gradient.push_back(Floats::normal(size, random));
      first.push_back(Floats::normal(size, random, 0.1));
      second.push_back(Floats::normal(size, random));
      for (float& value : second.back()) value *= value;
    }
  }

  /// As before the first step.
  void forget() {
    for (std::vector<Floats>* moments : {&first, &second}) {
      for (Floats& array : *moments) array = Floats(array.size(), 0.0f);
    }
  }

  void step(const AdamFactors& factors, const ParallelFor& parallel_for = serial_for) {
    std::vector<AdamArrays> arrays;
    for (size_t i = 0; i < parameter.size(); ++i) {
      arrays.push_back({parameter[i].size(), parameter[i].data(), gradient[i].data(),
                        first[i].data(), second[i].data()});
    }
    adam(arrays, factors, parallel_for);
  }
};

void expect_same_state(const State& actual, const State& expected, const std::string& what) {
  for (size_t i = 0; i < expected.parameter.size(); ++i) {
    expect_same_bits(actual.parameter[i], expected.parameter[i], what + ": parameter");
    expect_same_bits(actual.first[i], expected.first[i], what + ": first");
    expect_same_bits(actual.second[i], expected.second[i], what + ": second");
  }
}

struct Textbook {
  double learning_rate = 1e-3, beta1 = 0.9, beta2 = 0.999, eps = 1e-8, weight_decay = 0;

  /// The kernel's factors in step number `step` = 1, 2, ...
  AdamFactors factors(int step) const {
    const double correction1 = 1 - std::pow(beta1, step), correction2 = 1 - std::pow(beta2, step);
    return {.beta1 = static_cast<float>(beta1),
            .beta2 = static_cast<float>(beta2),
            .eps = static_cast<float>(eps),
            .keep = static_cast<float>(1 - learning_rate * weight_decay),
            .step_size = static_cast<float>(learning_rate / correction1),
            .second_factor = static_cast<float>(1 / std::sqrt(correction2))};
  }
};

AdamFactors random_factors(Random& random) {
  constexpr float beta1[] = {0.0f, 0.5f, 0.9f, 0.99f}, beta2[] = {0.0f, 0.9f, 0.999f, 0.9999f};
  constexpr float eps[] = {1e-8f, 1e-6f, 1e-2f}, scale[] = {1.0f, 0.03f, 20.0f};
  return {.beta1 = random.pick(beta1),
          .beta2 = random.pick(beta2),
          .eps = random.pick(eps),
          .gradient_scale = random.pick(scale),
          .keep = static_cast<float>(1 - 0.1 * random.uniform()),
          .step_size = static_cast<float>(random.uniform()),
          .second_factor = static_cast<float>(1 + random.uniform())};
}

TEST(AdamKernel, FollowsItsFormula) {
  on_every_target([] {
    for (uint64_t seed = 0; seed < kRandomCases && !testing::Test::HasFailure(); ++seed) {
      Random random(seed);
      std::vector<int64_t> sizes(static_cast<size_t>(random.below(4)));
      for (int64_t& size : sizes) size = random.pick(kSizes);
      const AdamFactors f = random_factors(random);
      const State before(sizes, random);
      State after = before;
      after.step(f);
      for (size_t i = 0; i < sizes.size(); ++i) {
        auto m = before.first[i].as<Bounded>(), v = before.second[i].as<Bounded>(),
             p = before.parameter[i].as<Bounded>();
        adam_reference(sizes[i], f, before.gradient[i].as<Bounded>().data(), p.data(), m.data(),
                       v.data());
        const std::string what = "case " + std::to_string(seed);
        expect_within(after.first[i], m, what + ": first");
        expect_within(after.second[i], v, what + ": second");
        expect_within(after.parameter[i], p, what + ": parameter");
        EXPECT_TRUE(after.gradient[i].guards_untouched());
      }
    }
  });
}

TEST(AdamKernel, ManyStepsAreTheTextbooks) {
  constexpr int kSteps = 30;
  constexpr int64_t kCount = 100;
  for (const double weight_decay : {0.0, 0.1}) {
    const Textbook book{.learning_rate = 1e-2, .weight_decay = weight_decay};
    on_every_target([&] {
      Random random(7);
      State state({kCount}, random);
      state.forget();
      std::vector<double> p = state.parameter[0].as<double>(), m(kCount), v(kCount);
      for (int step = 1; step <= kSteps; ++step) {
        state.gradient[0] = Floats::normal(kCount, random);
        for (int64_t k = 0; k < kCount; ++k) {
          const double g = state.gradient[0][k];
          m[k] = book.beta1 * m[k] + (1 - book.beta1) * g;
          v[k] = book.beta2 * v[k] + (1 - book.beta2) * g * g;
          const double mean = m[k] / (1 - std::pow(book.beta1, step));
          const double square = v[k] / (1 - std::pow(book.beta2, step));
          p[k] -= book.learning_rate * book.weight_decay * p[k];  // decoupled: g has no part in it
          p[k] -= book.learning_rate * mean / (std::sqrt(square) + book.eps);
        }
        state.step(book.factors(step));
      }
      // A step rounds parameters below 4 a few times, and an update of about one learning rate;
      // 1 - beta2 = 1e-3 is 3e-5 of itself off when beta2 is a float, half of that after the root.
      const double bound = kSteps * (3 * 4 * 0x1p-24 + book.learning_rate * 2e-5);
      expect_near(state.parameter[0], p, bound, "parameter");
    });
  }
}

TEST(AdamKernel, FirstStepIsOneLearningRateAgainstTheGradient) {
  const Textbook book{.learning_rate = 0.125, .eps = 0};
  on_every_target([&] {
    Random random(1);
    State state({67}, random);
    state.forget();
    std::vector<Bounded> expected;
    for (int64_t k = 0; k < 67; ++k) {
      const double direction = state.gradient[0][k] < 0 ? -1 : 1;
      // The two corrections cancel but for the roundings of beta2, see above.
      const Bounded update(book.learning_rate * direction, book.learning_rate * 2e-5);
      expected.push_back(Bounded(state.parameter[0][k]) - update);
    }
    state.step(book.factors(1));
    expect_within(state.parameter[0], expected, "parameter");
  });
}

TEST(AdamKernel, ZeroGradientOnlyForgetsAndDecays) {
  const Textbook book{.learning_rate = 0.5, .weight_decay = 0.5};  // keep = 3/4, exactly
  on_every_target([&] {
    Random random(2);
    State state({33}, random);
    state.gradient[0] = Floats(33, 0.0f);
    State fresh = state;
    fresh.forget();
    const State before = state;
    state.step(book.factors(5));
    fresh.step(book.factors(1));
    for (int64_t k = 0; k < 33; ++k) {
      EXPECT_EQ(state.first[0][k], 0.9f * before.first[0][k]);
      EXPECT_EQ(state.second[0][k], 0.999f * before.second[0][k]);
      EXPECT_EQ(fresh.first[0][k], 0.0f);
      EXPECT_EQ(fresh.second[0][k], 0.0f);
      EXPECT_EQ(fresh.parameter[0][k], 0.75f * before.parameter[0][k]);
    }
  });
}

TEST(AdamKernel, DecayIsNoPartOfTheMoments) {
  on_every_target([] {
    Random random(3);
    State kept({65}, random);
    State decayed = kept;
    const State before = kept;
    AdamFactors factors = Textbook{}.factors(3);
    kept.step(factors);
    factors.keep = 0.5f;
    decayed.step(factors);
    expect_same_bits(decayed.first[0], kept.first[0], "first");
    expect_same_bits(decayed.second[0], kept.second[0], "second");
    for (int64_t k = 0; k < 65; ++k) {
      // Half of the parameter is gone, and nothing else: p and p / 2 minus the same update,
      // rounded.
      const float whole = before.parameter[0][k];
      EXPECT_NEAR(kept.parameter[0][k] - decayed.parameter[0][k], whole / 2,
                  4 * 0x1p-24 * (std::abs(whole) + std::abs(kept.parameter[0][k])));
    }
  });
}

TEST(AdamKernel, GradientScaleIsAFactorOfTheGradient) {
  on_every_target([] {
    Random random(4);
    State clipped({65}, random);
    State scaled = clipped;
    for (float& value : scaled.gradient[0]) value *= 0.25f;
    AdamFactors factors = Textbook{}.factors(2);
    scaled.step(factors);
    factors.gradient_scale = 0.25f;
    clipped.step(factors);
    expect_same_state(clipped, scaled, "scale 1/4");
  });
}

TEST(AdamKernel, NanStaysInItsElement) {
  on_every_target([] {
    Random random(5);
    for (const int64_t bad : {0, 3, 8, 36}) {
      State clean({37}, random);
      State dirty = clean;
      dirty.gradient[0][bad] = std::numeric_limits<float>::quiet_NaN();
      clean.step(Textbook{}.factors(1));
      dirty.step(Textbook{}.factors(1));
      for (std::vector<Floats> State::* arrays :
           {&State::parameter, &State::first, &State::second}) {
        EXPECT_TRUE(std::isnan((dirty.*arrays)[0][bad]));
        (dirty.*arrays)[0][bad] = (clean.*arrays)[0][bad];
      }
      expect_same_state(dirty, clean, "beside the NaN");
    }
  });
}

TEST(AdamKernel, SameBitsForAnyScheduleAndCut) {
  on_every_target([] {
    Random random(6);
    const State before(kManyPieces, random);
    const AdamFactors factors = Textbook{.weight_decay = 0.1}.factors(4);
    State expected = before;
    expected.step(factors);
    on_every_schedule([&](const ParallelFor& parallel_for) {
      State state = before;
      state.step(factors, parallel_for);
      expect_same_state(state, expected, "schedule");
    });
    State parts = before;
    for (size_t i = 0; i < parts.parameter.size(); ++i) {
      const int64_t size = parts.parameter[i].size(), cut = size / 3;
      const auto part = [&](int64_t begin, int64_t end) {
        return AdamArrays{end - begin, parts.parameter[i].data() + begin,
                          parts.gradient[i].data() + begin, parts.first[i].data() + begin,
                          parts.second[i].data() + begin};
      };
      adam({part(0, cut), part(cut, size)}, factors, serial_for);
    }
    expect_same_state(parts, expected, "cut");
  });
}

std::vector<FloatArray> read(const std::vector<Floats>& arrays) {
  std::vector<FloatArray> result;
  for (const Floats& array : arrays) result.push_back({array.size(), array.data()});
  return result;
}

double squares(const std::vector<Floats>& arrays, const ParallelFor& parallel_for = serial_for) {
  return sum_of_squares(read(arrays), parallel_for);
}

TEST(SumOfSquares, IsExactForWholeNumbers) {
  on_every_target([] {
    EXPECT_EQ(squares({}), 0.0);
    for (uint64_t seed = 0; seed < kRandomCases / 10; ++seed) {
      Random random(seed);
      std::vector<Floats> arrays;
      for (int64_t left = random.below(4); left > 0; --left) {
        arrays.push_back(Floats(random.pick(kSizes)));
        for (float& value : arrays.back()) value = static_cast<float>(random.below(4001) - 2000);
      }
      ASSERT_EQ(squares(arrays), sum_of_squares_reference(read(arrays))) << "case " << seed;
    }
  });
}

TEST(SumOfSquares, IsSummedInDouble) {
  on_every_target([] {
    // Squares that float can not hold, and a million that would not count beside 2^24 in float.
    EXPECT_EQ(squares({Floats(3, 0x1p100f)}), 3 * 0x1p200);
    EXPECT_EQ(squares({Floats(1, 0x1p12f), Floats(1'000'000, 0.5f)}), 0x1p24 + 250'000);
    EXPECT_TRUE(std::isnan(squares({Floats(100, 1.0f), Floats(1)})));
  });
}

TEST(SumOfSquares, SameBitsForAnySchedule) {
  on_every_target([] {
    Random random(8);
    const State state(kManyPieces, random);
    const double expected = squares(state.gradient);
    on_every_schedule([&](const ParallelFor& parallel_for) {
      EXPECT_EQ(squares(state.gradient, parallel_for), expected);
    });
  });
}

}  // namespace
}  // namespace elliptical::kernels::test::adam_test
