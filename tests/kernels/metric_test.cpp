// SPDX-License-Identifier: MIT
//
// The fast metric kernel against the slow one, on every SIMD target.
#include "elliptical/kernels/metric.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

#include "elliptical/kernels/metric_reference.h"
#include "tests/kernels/strided_array.h"
#include "tests/kernels/targets.h"
#include "tests/kernels/threads.h"

namespace elliptical::kernels::test {
namespace {

struct Problem {
  StridedArray<float> v, v_prev;
  std::vector<int64_t> lengths;
  MetricInputs<float> in;

  Problem(const Sizes4& sizes, const Layout& layout, uint32_t seed)
      : v(sizes, layout), v_prev(sizes, layout) {
    std::mt19937 generator(seed);
    std::normal_distribution<float> normal;
    for (StridedArray<float>* array : {&v, &v_prev}) {
      array->for_each([&](int64_t b, int64_t h, int64_t n, int64_t d) {
        array->at(b, h, n, d) = normal(generator);
      });
    }
    in.B = sizes[0];
    in.H = sizes[1];
    in.N = sizes[2];
    in.D = sizes[3];
    in.v = std::as_const(v).view();
    in.v_prev = std::as_const(v_prev).view();
  }

  void pad(uint32_t seed) {
    std::mt19937 generator(seed);
    for (int64_t b = 0; b < in.B; ++b) {
      lengths.push_back(std::uniform_int_distribution<int64_t>(0, in.N)(generator));
      for (int64_t h = 0; h < in.H; ++h)
        for (int64_t n = lengths.back(); n < in.N; ++n)
          for (int64_t d = 0; d < in.D; ++d) v.at(b, h, n, d) = std::nanf("");
    }
    in.lengths = lengths.data();
  }

  size_t metric_size() const {
    return static_cast<size_t>(in.B * in.H * (in.prefix ? in.N : 1) * in.D);
  }
};

/// Largest error relative to the largest entry, 1 for scaled rows of this size.
void expect_near_reference(const Problem& problem, const ParallelFor& parallel_for) {
  std::vector<float> fast(problem.metric_size(), -1.0f), slow(problem.metric_size());
  metric_difference(problem.in, fast.data(), parallel_for);
  metric_reference(problem.in, slow.data());
  for (size_t i = 0; i < slow.size(); ++i) {
    // Compensated float sums: a few roundings, whatever the number of tokens; the mean over a row
    // adds those of a plain sum of up to 65 numbers.
    ASSERT_NEAR(fast[i], slow[i], 1e-6f * std::max(1.0f, slow[i])) << "element " << i;
  }
}

TEST(Metric, EqualsTheReferenceOnEveryTarget) {
  const std::vector<Layout> layouts = {
      {}, {.order = {0, 2, 1, 3}, .gap = {0, 0, 0, 3}, .offset = 1}, {.order = {3, 1, 2, 0}}};
  for (const std::string& target : targets_under_test()) {
    const ForcedTarget forced(target);
    uint32_t seed = 0;
    for (const int64_t N : {0, 1, 2, 7, 64, 197})
      for (const int64_t D : {0, 1, 3, 7, 8, 9, 16, 17, 31, 64, 65})
        for (const Layout& layout : layouts)
          for (const bool prefix : {false, true}) {
            Problem problem({2, 3, N, D}, layout, ++seed);
            problem.in.prefix = prefix;
            problem.in.scaling = static_cast<MetricScaling>(seed % 3);
            problem.in.delta = 1.0 + seed % 5;
            if (seed % 2 == 0) problem.pad(seed);
            SCOPED_TRACE(testing::Message() << target << " N " << N << " D " << D << " prefix "
                                            << prefix << " scaling " << seed % 3);
            expect_near_reference(problem, serial_for);
            if (HasFatalFailure()) return;
          }
  }
}

TEST(Metric, KeepsItsDigitsOverLongSequences) {
  Problem problem({1, 1, 100'000, 4}, {}, 1);
  for (const bool prefix : {false, true}) {
    problem.in.prefix = prefix;
    if (prefix) problem.in.N = 3'000;  // the reference is quadratic
    expect_near_reference(problem, serial_for);
  }
}

TEST(Metric, NoChangeGivesOnes) {
  for (const MetricScaling scaling :
       {MetricScaling::kMax, MetricScaling::kMean, MetricScaling::kNone}) {
    Problem problem({1, 2, 5, 6}, {}, 1);
    problem.in.v_prev = problem.in.v;
    problem.in.prefix = true;
    problem.in.scaling = scaling;
    std::vector<float> metric(problem.metric_size());
    metric_difference(problem.in, metric.data(), serial_for);
    EXPECT_EQ(metric, std::vector<float>(problem.metric_size(), 1.0f));
  }
}

TEST(Metric, HasTheSameBitsForAnyThreads) {
  Problem problem({3, 5, 61, 24}, {}, 1);
  problem.pad(2);
  problem.in.prefix = true;
  std::vector<float> expected(problem.metric_size());
  metric_difference(problem.in, expected.data(), serial_for);
  for (const int threads : {1, 2, 3, 8}) {
    std::vector<float> metric(problem.metric_size());
    metric_difference(problem.in, metric.data(), shuffled_threads(threads, 3));
    ASSERT_EQ(metric, expected) << threads << " threads";
  }
}

}  // namespace
}  // namespace elliptical::kernels::test
