// SPDX-License-Identifier: MIT
//
// Products against their references in double on every SIMD target, at sizes around tiles, panels and blocks;
// schedules change no bit; nothing beside the operands is touched.
#include "elliptical/kernels/product.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "elliptical/kernels/product_reference.h"
#include "tests/kernels/floats.h"
#include "tests/kernels/on_every_target.h"
#include "tests/kernels/threads.h"

namespace elliptical::kernels::test::product_test {
namespace {

/// Normal numbers, the same for the same seed.
Floats random_floats(int64_t count, uint64_t seed) {
  Random random(seed);
  return Floats::normal(count, random);
}

struct Shape {
  int64_t rows, K, N;
};
constexpr Shape kShapes[] = {{1, 1, 1},      {3, 5, 7},     {47, 4, 16}, {48, 8, 32},
                             {49, 33, 31},   {95, 12, 33},  {96, 1, 65}, {97, 64, 48},
                             {131, 192, 17}, {12, 300, 96}, {0, 4, 4},   {5, 0, 3}};

/// b (K, N), which lies in memory so or transposed.
ConstMatrix matrix(const Shape& s, const Floats& b, bool is_transposed) {
  return is_transposed ? ConstMatrix{b.data(), 1, s.K} : ConstMatrix{b.data(), s.N, 1};
}

Floats multiply(const Shape& s,
                const Floats& a,
                const Floats& b,
                bool is_transposed,
                const float* bias,
                const ParallelFor& threads = serial_for) {
  Floats packed_b(packed_size(s.K, s.N)), out(s.rows * s.N);
  pack(s.K, s.N, matrix(s, b, is_transposed), packed_b.data(), threads);
  EXPECT_TRUE(packed_b.guards_untouched());
  row_product({s.rows, s.K, s.N, a.data(), packed_b.data(), bias, out.data()}, threads);
  return out;
}

Floats outer(const Shape& s,
             const Floats& a,
             const Floats& b,
             const Floats* before,
             const ParallelFor& threads = serial_for) {
  const auto& [T, I, J] = s;
  Floats out = before ? *before : Floats(I * J);
  gradient_product({T, I, J, a.data(), b.data(), out.data(), before != nullptr}, threads);
  return out;
}

void expect_products(const Shape& s, uint64_t seed) {
  const std::string what = "case " + std::to_string(seed) + ": " + std::to_string(s.rows) + " x " +
                           std::to_string(s.K) + " x " + std::to_string(s.N);
  Random random(seed);
  const Floats a = Floats::normal(s.rows * s.K, random), b = Floats::normal(s.K * s.N, random),
               bias = Floats::normal(s.N, random), above = Floats::normal(s.rows * s.N, random),
               before = Floats::normal(s.K * s.N, random);
  for (const bool is_transposed : {false, true}) {
    for (const bool has_bias : {false, true}) {
      std::vector<Bounded> exact(static_cast<size_t>(s.rows * s.N));
      row_product_reference({.rows = s.rows,
                             .K = s.K,
                             .N = s.N,
                             .a = a.data(),
                             .bias = has_bias ? bias.data() : nullptr},
                            matrix(s, b, is_transposed), exact.data());
      expect_within(multiply(s, a, b, is_transposed, has_bias ? bias.data() : nullptr), exact,
                    what + ", rows");
    }
  }
  for (const bool adds : {false, true}) {
    std::vector<Bounded> exact(static_cast<size_t>(s.K * s.N));
    Floats out = before;
    gradient_product_reference({s.rows, s.K, s.N, a.data(), above.data(), out.data(), adds},
                               exact.data());
    expect_within(outer(s, a, above, adds ? &before : nullptr), exact, what + ", gradient");
  }
  std::vector<Bounded> exact(static_cast<size_t>(s.K));
  column_sums_reference({s.rows, s.K}, a.data(), exact.data());
  Floats sums(s.K);
  column_sums({s.rows, s.K}, a.data(), sums.data(), serial_for);
  expect_within(sums, exact, what + ", column sums");
}

TEST(Product, MatchesTheReference) {
  on_every_target([] {
    for (const Shape& s : kShapes) expect_products(s, 1);
  });
}

TEST(Product, MatchesTheReferenceOnRandomShapes) {
  constexpr int64_t rows[] = {0, 1, 2, 5, 11, 12, 13, 47, 48, 49, 128, 129},
                    widths[] = {0, 1, 2, 3, 4, 7, 8, 9, 15, 16, 17, 31, 32, 33, 64, 65};
  on_every_target([&] {
    for (uint64_t seed = 0; seed < (kSanitized ? 60 : 600) && !testing::Test::HasFailure();
         ++seed) {
      Random random(seed);
      expect_products({random.pick(rows), random.pick(widths), random.pick(widths)}, seed);
    }
  });
}

TEST(Product, ColumnSumsOfManyRows) {
  on_every_target([] {
    for (const Rows size : {Rows{700, 67}, Rows{5000, 9}}) {
      const Floats x = random_floats(size.rows * size.C, 7);
      std::vector<Bounded> exact(static_cast<size_t>(size.C));
      column_sums_reference(size, x.data(), exact.data());
      Floats sums(size.C);
      column_sums(size, x.data(), sums.data(), serial_for);
      expect_within(sums, exact, "column sums");
    }
  });
}

TEST(Product, RowsHaveTheirBitsWhereverTheyLie) {
  on_every_target([] {
    const Shape s{120, 37, 45};
    const Floats a = random_floats(s.rows * s.K, 8), b = random_floats(s.K * s.N, 9),
                 bias = random_floats(s.N, 10);
    const Floats whole = multiply(s, a, b, false, bias.data());
    for (const int64_t begin : {0, 1, 11, 12, 50, 119}) {
      for (const int64_t rows : {1, 2, 7, 13, 60}) {
        if (begin + rows > s.rows) continue;
        Floats part_a(rows * s.K), expected(rows * s.N);
        std::copy_n(a.data() + begin * s.K, part_a.size(), part_a.data());
        std::copy_n(whole.data() + begin * s.N, expected.size(), expected.data());
        expect_same_bits(multiply({rows, s.K, s.N}, part_a, b, false, bias.data()), expected,
                         std::to_string(rows) + " rows from " + std::to_string(begin));
      }
    }
  });
}

TEST(Product, NanStaysInItsRowAndColumn) {
  on_every_target([] {
    const Shape s{50, 9, 33};
    const Floats a = random_floats(s.rows * s.K, 11), b = random_floats(s.K * s.N, 12);
    const Floats clean = multiply(s, a, b, false, nullptr);
    Floats bad_a = a, bad_b = b;
    bad_a[48 * s.K + 3] = bad_b[4 * s.N + 32] = std::numeric_limits<float>::quiet_NaN();
    const Floats by_row = multiply(s, bad_a, b, false, nullptr),
                 by_column = multiply(s, a, bad_b, false, nullptr);
    for (int64_t i = 0; i < s.rows * s.N; ++i) {
      ASSERT_TRUE(i / s.N == 48 ? std::isnan(by_row[i]) : by_row[i] == clean[i]) << i;
      ASSERT_TRUE(i % s.N == 32 ? std::isnan(by_column[i]) : by_column[i] == clean[i]) << i;
    }
  });
}

TEST(Product, SchedulesChangeNoBit) {
  on_every_target([] {
    const Shape s{500, 70, 230};
    const Floats a = random_floats(s.rows * s.K, 8), b = random_floats(s.K * s.N, 9),
                 above = random_floats(s.rows * s.N, 10);
    const auto sums = [&](const ParallelFor& threads) {
      Floats result(s.N);
      column_sums({s.rows, s.N}, above.data(), result.data(), threads);
      return result;
    };
    const Floats rows = multiply(s, a, b, false, nullptr), gradient = outer(s, a, above, nullptr),
                 columns = sums(serial_for);
    on_every_schedule([&](const ParallelFor& threads) {
      expect_same_bits(multiply(s, a, b, false, nullptr, threads), rows, "rows");
      expect_same_bits(outer(s, a, above, nullptr, threads), gradient, "gradient");
      expect_same_bits(sums(threads), columns, "column sums");
    });
  });
}

}  // namespace
}  // namespace elliptical::kernels::test::product_test
