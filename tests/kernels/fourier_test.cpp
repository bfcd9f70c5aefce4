// SPDX-License-Identifier: MIT
//
// Attention with sinc functions against its reference with error bounds, on random problems with
// every option, forward and backward; what is hidden stays hidden.
#include "elliptical/kernels/fourier.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "elliptical/kernels/fourier_reference.h"
#include "tests/kernels/differences.h"
#include "tests/kernels/floats.h"
#include "tests/kernels/on_every_target.h"
#include "tests/kernels/threads.h"

namespace elliptical::kernels::test {

/// Sines and cosines of differences: those of a and b with up to 4 units in the last place each
/// (Highway's), two products and a sum.
constexpr double kSineError = 8 * kStep;

// For the reference, which finds them by their argument. The kernel takes sinc(a - b) from a series
// below 1, elsewhere from sines of a and b; the logarithm of the product over d costs two steps for
// each of its factors at most.
inline Bounded log_sinc(const Bounded& x) {
  const double relative =
      std::abs(x.value) < 1 ? 3 * kStep : kSineError / std::abs(std::sin(x.value));
  return {kernels::log_sinc(x.value), std::log1p(relative) + 2 * kStep};
}

inline Bounded log_sinc_slope(const Bounded& x) {
  const double slope = kernels::log_sinc_slope(x.value);
  if (std::abs(x.value) < 1) return {slope, 4 * kStep * std::abs(slope)};
  // (x cos x - sin x) / (x sin x); where the sine has no digit left, its floor stands for it.
  const double sine = std::max(std::abs(std::sin(x.value)) - kSineError, 1e-9);
  return {slope, (2 * kSineError + kStep) / sine + std::abs(slope) * (kSineError / sine + kStep)};
}

namespace fourier_test {
namespace {

constexpr int kRandomCases = kSanitized ? 150 : 1500;
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

struct FourierCase {
  uint64_t seed = 0;
  FourierInputs<float> in;  ///< all but a, b and v
  std::vector<int64_t> lengths;
  Floats a, b, v, d_o;

  void draw_numbers(Random& random, double spread) {
    const int64_t heads = in.B * in.H;
    a = Floats::normal(heads * in.N * in.D, random, spread);
    b = Floats::normal(heads * in.M * in.D, random, spread);
    v = Floats::normal(heads * in.M * in.Dv, random);
    d_o = Floats::normal(heads * in.N * in.Dv, random);
  }

  template <class T>
  FourierInputs<T> inputs(const T* a_data, const T* b_data, const T* v_data) const {
    return {in.B,         in.H,       in.N,      in.M,   in.D,
            in.Dv,        a_data,     b_data,    v_data, lengths.empty() ? nullptr : lengths.data(),
            in.is_causal, in.epsilon, in.dropout};
  }
  std::string describe() const {
    std::string text = "case " + std::to_string(seed) + ": B=" + std::to_string(in.B) +
                       " H=" + std::to_string(in.H) + " N=" + std::to_string(in.N) +
                       " M=" + std::to_string(in.M) + " D=" + std::to_string(in.D) +
                       " Dv=" + std::to_string(in.Dv) + " epsilon=" + std::to_string(in.epsilon);
    if (in.is_causal) text += " causal";
    if (in.dropout.active()) text += " dropout";
    for (const int64_t length : lengths) text += " length " + std::to_string(length);
    return text;
  }
};

FourierCase random_case(uint64_t seed) {
  Random random(seed);
  constexpr int64_t sizes[] = {0, 1, 1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 33};
  constexpr int64_t widths[] = {0, 1, 1, 2, 3, 5, 8, 16, 24};
  constexpr int64_t value_widths[] = {0, 1, 2, 3, 4, 7, 8, 9, 15, 16, 17, 33};
  constexpr double epsilons[] = {0.0, 0.0, 1e-6, 1e-2}, spreads[] = {0.1, 0.5, 1.0, 3.0};
  FourierCase c;
  c.seed = seed;
  c.in.B = 1 + random.below(2);
  c.in.H = 1 + random.below(2);
  c.in.N = random.pick(sizes);
  c.in.M = random.chance(0.5) ? c.in.N : random.pick(sizes);
  c.in.D = random.pick(widths);
  c.in.Dv = random.pick(value_widths);
  c.in.is_causal = random.chance(0.4);
  c.in.epsilon = random.pick(epsilons);
  if (random.chance(0.4)) c.in.dropout = Dropout(0.3, random.bits());
  for (int64_t b = 0; b < c.in.B && seed % 3 == 0; ++b) {
    c.lengths.push_back(random.below(c.in.M + 2));  // M + 1 counts as M
  }
  c.draw_numbers(random, random.pick(spreads));
  return c;
}

struct Outputs {
  Floats o, row_max, row_sum, d_a, d_b, d_v;
};

Outputs run_kernel(const FourierCase& c, const ParallelFor& parallel_for = serial_for) {
  const int64_t rows = c.in.B * c.in.H * c.in.N;
  Outputs out{Floats(rows * c.in.Dv), Floats(rows),       Floats(rows),
              Floats(rows * c.in.D),  Floats(c.b.size()), Floats(c.v.size())};
  const FourierInputs<float> in = c.inputs(c.a.data(), c.b.data(), c.v.data());
  fourier_forward(in, {out.o.data(), out.row_max.data(), out.row_sum.data()}, parallel_for);
  fourier_backward(in,
                   {out.o.data(), out.row_max.data(), out.row_sum.data(), c.d_o.data(),
                    out.d_a.data(), out.d_b.data(), out.d_v.data()},
                   parallel_for);
  return out;
}

void expect_same_outputs(const Outputs& actual, const Outputs& expected, const std::string& what) {
  expect_same_bits(actual.o, expected.o, what + ": o");
  expect_same_bits(actual.row_max, expected.row_max, what + ": row_max");
  expect_same_bits(actual.row_sum, expected.row_sum, what + ": row_sum");
  expect_same_bits(actual.d_a, expected.d_a, what + ": d_a");
  expect_same_bits(actual.d_b, expected.d_b, what + ": d_b");
  expect_same_bits(actual.d_v, expected.d_v, what + ": d_v");
}

void expect_reference(const FourierCase& c) {
  const Outputs out = run_kernel(c);
  const auto a = c.a.as<Bounded>(), b = c.b.as<Bounded>(), v = c.v.as<Bounded>(),
             d_o = c.d_o.as<Bounded>();
  const FourierInputs<Bounded> in = c.inputs(a.data(), b.data(), v.data());
  std::vector<Bounded> o(d_o), row_max(static_cast<size_t>(out.row_max.size())), row_sum(row_max),
      d_a(a), d_b(b), d_v(v);
  fourier_reference_forward(in, FourierOutputs<Bounded>{o.data(), row_max.data(), row_sum.data()});
  fourier_reference_backward(
      in, FourierGradients<Bounded>{o.data(), row_max.data(), row_sum.data(), d_o.data(),
                                    d_a.data(), d_b.data(), d_v.data()});
  const std::string what = c.describe();
  for (Bounded& max : row_max) {
    if (std::isfinite(max.value)) max = max * std::numbers::log2e;
  }
  expect_within(out.o, o, what + ": o");
  expect_within(out.row_max, row_max, what + ": row_max");
  expect_within(out.row_sum, row_sum, what + ": row_sum");
  expect_within(out.d_a, d_a, what + ": d_a");
  expect_within(out.d_b, d_b, what + ": d_b");
  expect_within(out.d_v, d_v, what + ": d_v");
}

TEST(Fourier, MatchesTheReference) {
  on_every_target([] {
    for (uint64_t seed = 0; seed < kRandomCases && !testing::Test::HasFailure(); ++seed) {
      expect_reference(random_case(seed));
    }
  });
}

TEST(Fourier, ProductsOfManySincsLeaveNoRange) {
  // The product over 300 coordinates is far below what a float can hold.
  on_every_target([] {
    FourierCase c;
    c.in = {.B = 1, .H = 1, .N = 5, .M = 9, .D = 300, .Dv = 3, .dropout = {}};
    Random random(1);
    c.draw_numbers(random, 10);
    expect_reference(c);
  });
}

TEST(Fourier, QueriesThatAreKeysHaveTheLogitZero) {
  on_every_target([] {
    FourierCase c;
    c.in = {.B = 1, .H = 1, .N = 1, .M = 1, .D = 9, .Dv = 2, .epsilon = 1, .dropout = {}};
    Random random(2);
    c.draw_numbers(random, 2);
    c.b = c.a;
    const Outputs out = run_kernel(c);
    EXPECT_EQ(out.row_max[0], 0.0f);
    EXPECT_EQ(out.row_sum[0], 2.0f);  // exp(0) + epsilon
    for (int64_t i = 0; i < 2; ++i) EXPECT_EQ(out.o[i], c.v[i] / 2);
    for (const float value : out.d_a) EXPECT_EQ(value, 0.0f);  // the logit's maximum
    for (const float value : out.d_b) EXPECT_EQ(value, 0.0f);
  });
}

TEST(Fourier, ReferenceGradientsMatchDifferences) {
  for (const double epsilon : {0.0, 0.1}) {
    FourierCase c;
    c.in = {.B = 1,
            .H = 2,
            .N = 3,
            .M = 4,
            .D = 3,
            .Dv = 2,
            .is_causal = true,
            .epsilon = epsilon,
            .dropout = Dropout(0.3, 7)};
    Random random(3);
    Inputs at = normal_inputs({2 * 3 * 3, 2 * 4 * 3, 2 * 4 * 2}, random);
    for (size_t i = 0; i < 2; ++i) {
      for (double& value : at[i]) value *= 0.5;
    }
    std::vector<double> row_max(6), row_sum(6);
    const auto forward = [&](const Inputs& x) {
      std::vector<double> o(2 * 3 * 2);
      fourier_reference_forward(c.inputs(x[0].data(), x[1].data(), x[2].data()),
                                FourierOutputs<double>{o.data(), row_max.data(), row_sum.data()});
      return o;
    };
    const std::vector<double> o = forward(at), d_o = normal_inputs({2 * 3 * 2}, random)[0];
    Inputs gradients = at;
    fourier_reference_backward(
        c.inputs(at[0].data(), at[1].data(), at[2].data()),
        FourierGradients<double>{o.data(), row_max.data(), row_sum.data(), d_o.data(),
                                 gradients[0].data(), gradients[1].data(), gradients[2].data()});
    expect_gradients_match_differences(forward, at, d_o, gradients);
  }
}

/// Writes junk() wherever no result may depend on the number.
template <class Junk>
FourierCase with_hidden(FourierCase c, const Junk& junk) {
  const FourierInputs<float> in = c.inputs(c.a.data(), c.b.data(), c.v.data());
  for (int64_t t = 0; t < in.B * in.H; ++t) {
    int64_t seen = 0;  // keys that some query sees
    for (int64_t n = 0; n < in.N; ++n) {
      const int64_t end = fourier_visible_keys(in, t / in.H, n);
      seen = std::max(seen, end);
      if (end > 0) continue;
      for (int64_t d = 0; d < in.D; ++d) c.a[(t * in.N + n) * in.D + d] = junk();
      for (int64_t i = 0; i < in.Dv; ++i) c.d_o[(t * in.N + n) * in.Dv + i] = junk();
    }
    for (int64_t j = seen; j < in.M; ++j) {
      for (int64_t d = 0; d < in.D; ++d) c.b[(t * in.M + j) * in.D + d] = junk();
      for (int64_t i = 0; i < in.Dv; ++i) c.v[(t * in.M + j) * in.Dv + i] = junk();
    }
  }
  return c;
}

TEST(Fourier, JunkInHiddenPlacesChangesNothing) {
  constexpr float junk[] = {kNan, std::numeric_limits<float>::infinity(),
                            -std::numeric_limits<float>::max()};
  on_every_target([&] {
    for (uint64_t seed = 0; seed < kRandomCases && !testing::Test::HasFailure(); seed += 3) {
      const FourierCase c = random_case(seed);
      Random random(seed);
      expect_same_outputs(run_kernel(with_hidden(c, [&] { return random.pick(junk); })),
                          run_kernel(with_hidden(c, [] { return 0.5f; })), c.describe());
    }
  });
}

TEST(Fourier, VisibleNanReachesTheRowsThatSeeItAndNoOther) {
  on_every_target([] {
    for (uint64_t seed = 0; seed < 100 && !testing::Test::HasFailure(); ++seed) {
      FourierCase clean = random_case(seed);
      if (clean.a.size() == 0 || clean.b.size() == 0 || clean.v.size() == 0) continue;
      clean.in.dropout = {};
      Random random(seed);
      const FourierInputs<float>& in = clean.in;
      const int64_t bad = random.below(in.B * in.H * in.M), head = bad / in.M;
      const Outputs expected = run_kernel(clean);
      for (Floats FourierCase::* array : {&FourierCase::b, &FourierCase::v}) {
        FourierCase dirty = clean;
        const int64_t width = array == &FourierCase::b ? in.D : in.Dv;
        for (int64_t i = 0; i < width; ++i) (dirty.*array)[bad * width + i] = kNan;
        const Outputs got = run_kernel(dirty);
        for (int64_t row = 0; row < in.B * in.H * in.N; ++row) {
          const int64_t t = row / in.N;
          const bool sees =
              t == head &&
              bad % in.M < fourier_visible_keys(clean.inputs<float>(nullptr, nullptr, nullptr),
                                                t / in.H, row % in.N);
          for (int64_t i = 0; i < in.Dv; ++i) {
            const float value = got.o[row * in.Dv + i];
            ASSERT_TRUE(sees ? std::isnan(value) : value == expected.o[row * in.Dv + i])
                << clean.describe() << ", row " << row << " is " << value;
          }
          for (int64_t d = 0; d < in.D && !sees; ++d) {
            ASSERT_EQ(got.d_a[row * in.D + d], expected.d_a[row * in.D + d]) << clean.describe();
          }
        }
      }
    }
  });
}

TEST(Fourier, RowSumsNeedNotBeKept) {
  on_every_target([] {
    const FourierCase c = random_case(21);
    const Outputs expected = run_kernel(c);
    Floats o(expected.o.size());
    fourier_forward(c.inputs(c.a.data(), c.b.data(), c.v.data()), {o.data()}, serial_for);
    expect_same_bits(o, expected.o, c.describe());
  });
}

TEST(Fourier, SameBitsForAnySchedule) {
  on_every_target([] {
    FourierCase c;
    c.in = {.B = 3,
            .H = 3,
            .N = 21,
            .M = 21,
            .D = 5,
            .Dv = 9,
            .is_causal = true,
            .dropout = Dropout(0.2, 4)};
    c.lengths = {21, 0, 13};
    Random random(5);
    c.draw_numbers(random, 1);
    const Outputs expected = run_kernel(c);
    on_every_schedule([&](const ParallelFor& threads) {
      expect_same_outputs(run_kernel(c, threads), expected, "schedule");
    });
  });
}

}  // namespace
}  // namespace fourier_test
}  // namespace elliptical::kernels::test
