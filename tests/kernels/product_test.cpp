// SPDX-License-Identifier: MIT
//
// Products against loops in double on every SIMD target, at sizes around tiles, panels and blocks;
// schedules change no bit; nothing outside of the operands is touched (under ASan).
#include "elliptical/kernels/product.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

#include "tests/kernels/targets.h"
#include "tests/kernels/threads.h"

namespace elliptical::kernels::test {
namespace {

using Floats = std::vector<float>;

Floats random_floats(int64_t count, uint32_t seed) {
  std::mt19937 generator(seed);
  std::normal_distribution<float> normal;
  Floats values(static_cast<size_t>(count));
  for (float& value : values) value = normal(generator);
  return values;
}

/// A sum of `terms` products of normal numbers in float, summed in some order.
double bound(int64_t terms) { return 1e-6 * std::sqrt(static_cast<double>(terms) + 1) * 4; }

struct Shape {
  int64_t rows, K, N;
};
constexpr Shape kShapes[] = {{1, 1, 1},      {3, 5, 7},     {47, 4, 16}, {48, 8, 32},
                             {49, 33, 31},   {95, 12, 33},  {96, 1, 65}, {97, 64, 48},
                             {131, 192, 17}, {12, 300, 96}, {0, 4, 4},   {5, 0, 3}};

Floats multiply(const Shape& s,
                const Floats& a,
                const Floats& b,
                bool is_transposed,
                const float* bias,
                const ParallelFor& threads) {
  Floats packed_b(static_cast<size_t>(packed_size(s.K, s.N)));
  Floats out(static_cast<size_t>(s.rows * s.N), std::nanf(""));
  const ConstMatrix plain{b.data(), s.N, 1}, turned{b.data(), 1, s.K};
  pack(s.K, s.N, is_transposed ? turned : plain, packed_b.data(), threads);
  row_product({s.rows, s.K, s.N, a.data(), packed_b.data(), bias, out.data()}, threads);
  return out;
}

TEST(Product, OfRowsMatchesLoopsInDouble) {
  for (const std::string& target : targets_under_test()) {
    const ForcedTarget forced(target);
    for (const Shape& s : kShapes) {
      const Floats a = random_floats(s.rows * s.K, 1), b = random_floats(s.K * s.N, 2),
                   bias = random_floats(s.N, 3);
      for (const bool is_transposed : {false, true}) {
        for (const float* added : {bias.data(), static_cast<const float*>(nullptr)}) {
          const Floats out = multiply(s, a, b, is_transposed, added, serial_for);
          for (int64_t r = 0; r < s.rows; ++r) {
            for (int64_t n = 0; n < s.N; ++n) {
              double sum = added ? added[n] : 0.0;
              for (int64_t k = 0; k < s.K; ++k) {
                const size_t place = is_transposed ? n * s.K + k : k * s.N + n;
                sum += static_cast<double>(a[r * s.K + k]) * b[place];
              }
              ASSERT_NEAR(out[r * s.N + n], sum, bound(s.K))
                  << target << ": " << s.rows << " x " << s.K << " x " << s.N << " at " << r << ", "
                  << n;
            }
          }
        }
      }
    }
  }
}

TEST(Product, OfGradientsMatchesLoopsInDouble) {
  for (const std::string& target : targets_under_test()) {
    const ForcedTarget forced(target);
    for (const auto& [T, I, J] : kShapes) {
      const Floats a = random_floats(T * I, 4), b = random_floats(T * J, 5),
                   before = random_floats(I * J, 6);
      for (const bool adds : {false, true}) {
        Floats out = before;
        gradient_product({T, I, J, a.data(), b.data(), out.data(), adds}, serial_for);
        for (int64_t i = 0; i < I; ++i) {
          for (int64_t j = 0; j < J; ++j) {
            double sum = adds ? before[i * J + j] : 0.0;
            for (int64_t t = 0; t < T; ++t) {
              sum += static_cast<double>(a[t * I + i]) * b[t * J + j];
            }
            ASSERT_NEAR(out[i * J + j], sum, bound(T))
                << target << ": " << T << ", " << I << ", " << J;
          }
        }
      }
    }
  }
}

TEST(Product, ColumnSumsMatchLoopsInDouble) {
  for (const std::string& target : targets_under_test()) {
    const ForcedTarget forced(target);
    for (const Rows size : {Rows{0, 3}, Rows{1, 1}, Rows{700, 67}, Rows{5000, 9}}) {
      const Floats x = random_floats(size.rows * size.C, 7);
      Floats sums(static_cast<size_t>(size.C), std::nanf(""));
      column_sums(size, x.data(), sums.data(), serial_for);
      for (int64_t c = 0; c < size.C; ++c) {
        double sum = 0;
        for (int64_t r = 0; r < size.rows; ++r) sum += x[r * size.C + c];
        ASSERT_NEAR(sums[c], sum, bound(size.rows)) << target;
      }
    }
  }
}

TEST(Product, SchedulesChangeNoBit) {
  const Shape s{500, 70, 90};
  const Floats a = random_floats(s.rows * s.K, 8), b = random_floats(s.K * s.N, 9);
  const Floats rows = multiply(s, a, b, false, nullptr, serial_for);
  Floats gradient(static_cast<size_t>(s.K * s.N));
  const Floats above = random_floats(s.rows * s.N, 10);
  const auto outer = [&](const ParallelFor& threads) {
    Floats out(gradient.size());
    gradient_product({s.rows, s.K, s.N, a.data(), above.data(), out.data()}, threads);
    return out;
  };
  gradient = outer(serial_for);
  for (uint64_t seed = 0; seed < 20; ++seed) {
    const ParallelFor threads = shuffled_threads(3, seed);
    EXPECT_EQ(multiply(s, a, b, false, nullptr, threads), rows) << seed;
    EXPECT_EQ(outer(threads), gradient) << seed;
  }
}

}  // namespace
}  // namespace elliptical::kernels::test
