// SPDX-License-Identifier: MIT
//
// What kernels are made of, on every target: powers of two, loops over vectors, products with
// channels in the lanes, transposition. Compiled once per target, as kernels are.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "elliptical/kernels/simd_impl.h"
#include "tests/kernels/floats.h"
#include "tests/kernels/on_every_target.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "tests/kernels/vectors_test.cpp"
#include "hwy/foreach_target.h"
// After foreach_target, which re-includes this file:
#include "elliptical/kernels/exp2-inl.h"
#include "elliptical/kernels/few_queries-inl.h"
#include "elliptical/kernels/rows-inl.h"
#include "elliptical/kernels/vectors-inl.h"

HWY_BEFORE_NAMESPACE();
namespace elliptical::kernels {
namespace HWY_NAMESPACE {
namespace {

int64_t Lanes() { return kLanes; }
int64_t MostFewQueries() { return kFewQueries; }

void Powers(int64_t count, const float* x, float* y) {
  ForVectors(count, [&](int64_t, auto load, auto store) HWY_ATTR { store(Exp2(load(x)), y); });
}

/// y = x + 1, and the sum of all that was loaded, lanes behind the end included.
float AddOne(int64_t count, const float* x, float* y) {
  const Tag tag;
  Vec sum = hn::Zero(tag);
  ForVectors(count, [&](int64_t, auto load, auto store) HWY_ATTR {
    sum = hn::Add(sum, load(x));
    store(hn::Add(load(x), hn::Set(tag, 1.0f)), y);
  });
  return hn::GetLane(hn::SumOfLanes(tag, sum));
}

void FewKeys(int64_t rows,
             int64_t queries,
             int64_t size,
             const float* k,
             int64_t ldk,
             const float* x,
             int64_t ldx,
             float factor,
             float* s) {
  FewKeyProduct({k, ldk, 1}, rows, x, ldx, queries, size, factor, s, kLanes);
}

void FewValues(int into,
               int64_t rows,
               int64_t queries,
               int64_t size,
               const float* w,
               const float* v,
               int64_t ldv,
               const float* factor,
               float* out,
               int64_t ldo) {
  const Scalars values{v, ldv, 1};
  if (into == 0) {
    FewValueProduct<Into::kEmpty>(w, kLanes, values, rows, queries, size, factor, out, ldo);
  } else if (into == 1) {
    FewValueProduct<Into::kSum>(w, kLanes, values, rows, queries, size, factor, out, ldo);
  } else {
    FewValueProduct<Into::kShrunk>(w, kLanes, values, rows, queries, size, factor, out, ldo);
  }
}

void Transposed(int64_t rows,
                int64_t columns,
                const float* from,
                const float* weights,
                int64_t ld_weights,
                float factor,
                float* to) {
  Transpose(from, columns, weights, ld_weights, rows, columns, factor, to, rows);
}

}  // namespace
// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace elliptical::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace elliptical::kernels {

HWY_EXPORT(Lanes);
HWY_EXPORT(MostFewQueries);
HWY_EXPORT(Powers);
HWY_EXPORT(AddOne);
HWY_EXPORT(FewKeys);
HWY_EXPORT(FewValues);
HWY_EXPORT(Transposed);

namespace test {
namespace {

/// The variant of a function for the target in use.
#define ON_TARGET(function) HWY_DISPATCH_TABLE(function)[simd_chosen().GetIndex()]

constexpr float kInf = std::numeric_limits<float>::infinity();

Floats powers(const Floats& x) {
  Floats y(x.size());
  ON_TARGET(Powers)(x.size(), x.data(), y.data());
  EXPECT_TRUE(y.guards_untouched());
  return y;
}

TEST(Exp2, HasTheRelativeErrorItPromises) {
  constexpr int64_t count = 1'000'000;
  Floats x(count);
  Random random(1);
  for (int64_t i = 0; i < count; ++i) {
    // All of the range, and as many numbers close to 0.
    x[i] = static_cast<float>(i % 2 ? -126 * random.uniform()
                                    : -std::exp2(7 * random.uniform() - 30 * random.uniform()));
    x[i] = std::max(x[i], -126.0f);
  }
  on_every_target([&] {
    const Floats y = powers(x);
    for (int64_t i = 0; i < count; ++i) {
      const double exact = std::exp2(double{x[i]});
      ASSERT_LE(std::abs(y[i] - exact), 2.4e-7 * exact) << "2^" << x[i];
    }
  });
}

TEST(Exp2, EndsOfItsRange) {
  on_every_target([] {
    const Floats y = powers(std::vector<float>{0.0f, -0.0f, -127.01f, -128.0f, -1e10f, -3e38f,
                                               -kInf, std::nanf(""), -1.0f});
    EXPECT_EQ(y[0], 1.0f);
    EXPECT_EQ(y[1], 1.0f);
    for (int64_t i = 2; i < 7; ++i) EXPECT_EQ(y[i], 0.0f) << i;
    EXPECT_TRUE(std::isnan(y[7]));
    EXPECT_EQ(y[8], 0.5f);
  });
}

TEST(ForVectors, TouchesEachElementOnceAndNoOther) {
  on_every_target([] {
    for (int64_t count = 0; count <= 70; ++count) {
      Floats x(count), y(count);
      for (int64_t i = 0; i < count; ++i) x[i] = static_cast<float>(i);
      EXPECT_EQ(ON_TARGET(AddOne)(count, x.data(), y.data()), count * (count - 1) / 2);
      for (int64_t i = 0; i < count; ++i) ASSERT_EQ(y[i], static_cast<float>(i + 1));
      ASSERT_TRUE(y.guards_untouched()) << count;
    }
  });
}

/// Shapes of few_queries-inl.h on the target in use.
struct FewShape {
  int64_t lanes, queries, rows, size, gap;

  explicit FewShape(Random& random)
      : lanes(ON_TARGET(Lanes)()),
        queries(1 + random.below(std::max<int64_t>(1, ON_TARGET(MostFewQueries)()))),
        rows(random.below(40)),
        size(lanes * (1 + random.below(7))),
        gap(random.below(4)) {}
};

TEST(FewQueries, KeyProductIsTheLoops) {
  on_every_target([] {
    if (ON_TARGET(MostFewQueries)() == 0) return;  // one lane: no query is few
    for (uint64_t seed = 0; seed < 500 && !testing::Test::HasFailure(); ++seed) {
      Random random(seed);
      const FewShape f(random);
      const int64_t ld = f.size + f.gap;
      const Floats k = Floats::normal(f.rows * ld, random),
                   x = Floats::normal(f.queries * ld, random);
      Floats s(f.rows * f.lanes);
      ON_TARGET(FewKeys)(f.rows, f.queries, f.size, k.data(), ld, x.data(), ld, 0.7f, s.data());
      std::vector<Bounded> exact;
      for (int64_t j = 0; j < f.rows; ++j) {
        for (int64_t l = 0; l < f.lanes; ++l) {
          Bounded dot(0);
          for (int64_t i = 0; i < f.size && l < f.queries; ++i) {
            dot += Bounded(k[j * ld + i]) * x[l * ld + i];
          }
          exact.push_back(dot * 0.7f);
        }
      }
      expect_within(s, exact, "case " + std::to_string(seed));
    }
  });
}

TEST(FewQueries, ValueProductIsTheLoopsWhateverWasThere) {
  on_every_target([] {
    if (ON_TARGET(MostFewQueries)() == 0) return;
    for (uint64_t seed = 0; seed < 900 && !testing::Test::HasFailure(); ++seed) {
      Random random(seed);
      const FewShape f(random);
      const int into = static_cast<int>(seed % 3), ld = static_cast<int>(f.size + f.gap);
      const Floats w = Floats::normal(f.rows * f.lanes, random),
                   v = Floats::normal(f.rows * ld, random),
                   factor = Floats::normal(f.lanes, random),
                   before = Floats::normal(f.queries * ld, random);
      Floats out = before;
      ON_TARGET(FewValues)
      (into, f.rows, f.queries, f.size, w.data(), v.data(), ld, factor.data(), out.data(), ld);
      std::vector<Bounded> exact = before.as<Bounded>();  // gaps stay as they are
      for (int64_t l = 0; l < f.queries; ++l) {
        for (int64_t i = 0; i < f.size; ++i) {
          Bounded& cell = exact[l * ld + i];
          if (into == 0) cell = 0;
          if (into == 2) cell = cell * factor[l];
          for (int64_t j = 0; j < f.rows; ++j) cell += Bounded(w[j * f.lanes + l]) * v[j * ld + i];
        }
      }
      expect_within(out, exact, "case " + std::to_string(seed));
    }
  });
}

TEST(Transpose, WeighsAndScales) {
  on_every_target([] {
    for (uint64_t seed = 0; seed < 300; ++seed) {
      Random random(seed);
      const int64_t rows = 4 * random.below(9), columns = 4 * random.below(9);
      const bool has_weights = random.chance(0.7), is_one_row = random.chance(0.5);
      const Floats from = Floats::normal(rows * columns, random),
                   weights = Floats::normal((is_one_row ? 1 : rows) * columns, random);
      Floats to(rows * columns);
      ON_TARGET(Transposed)
      (rows, columns, from.data(), has_weights ? weights.data() : nullptr, is_one_row ? 0 : columns,
       0.5f, to.data());
      for (int64_t r = 0; r < rows; ++r) {
        for (int64_t c = 0; c < columns; ++c) {
          const float weight = has_weights ? weights[(is_one_row ? 0 : r * columns) + c] : 1.0f;
          ASSERT_EQ(to[c * rows + r], from[r * columns + c] * weight * 0.5f) << seed;
        }
      }
      ASSERT_TRUE(to.guards_untouched()) << seed;
    }
  });
}

}  // namespace
}  // namespace test
}  // namespace elliptical::kernels
#endif  // HWY_ONCE
