// SPDX-License-Identifier: MIT
//
// Laws that attention obeys, on problems found by rapidcheck (which shrinks a failing one).
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <numeric>
#include <string>
#include <vector>

#include "tests/kernels/composite.h"
#include "tests/kernels/on_every_target.h"
#include "tests/kernels/problem.h"

namespace elliptical::kernels::test {
namespace {

/// Sizes and options of a small problem, all arrays apart from each other.
AttentionCase any_case() {
  const auto size = [](int64_t below) { return *rc::gen::inRange<int64_t>(1, below); };
  AttentionCase options;
  options.seed = *rc::gen::arbitrary<uint32_t>();
  options.sizes = {size(3), 0, size(3), size(40), size(40), size(20), size(20)};
  options.sizes.H = options.sizes.Hk * size(3);
  options.metric = *rc::gen::element<bench::Axes>("", "BH1D", "BHND");
  options.is_causal = *rc::gen::arbitrary<bool>();
  options.plain_memory = true;
  return options;
}

/// Where two results differ by more than rounding explains; empty if nowhere. Both are within a few
/// units of the exact result, see error_scales.
std::string difference(const Result<float>& actual,
                       const Result<float>& expected,
                       const Problem<float>& problem) {
  const auto scales = error_scales(Problem<double>(problem.options));
  const auto first = tensors(actual), second = tensors(expected);
  for (size_t t = 0; t < first.size(); ++t) {
    const std::vector<double> wanted(second[t].values.begin(), second[t].values.end());
    const double error = max_error(first[t].values, wanted);
    const auto scale = scales.find(first[t].name);
    const double bound = 32 * 0x1p-23 * (scale == scales.end() ? 0.0 : scale->second);
    if (error > bound) {
      return first[t].name + " differs by " + std::to_string(error) + ", bound " +
             std::to_string(bound) + "; " + problem.options.describe();
    }
  }
  return "";
}

RC_GTEST_PROP(AttentionProperties, CausalOutputsIgnoreTheFuture, ()) {
  AttentionCase options = any_case();
  options.is_causal = true;
  if (options.has_metric_row()) options.metric = "BHND";
  const auto& [B, H, Hk, N, M, D, Dv] = options.sizes;
  const int64_t now = *rc::gen::inRange<int64_t>(0, N);
  const Problem<float> before(options);
  Problem<float> after(options);
  Random random(options.seed + 1);
  const auto change_from = [&](StridedArray<float>& array, int64_t first) {
    array.for_each([&](int64_t b, int64_t h, int64_t n, int64_t d) {
      if (n >= first) array.at(b, h, n, d) = static_cast<float>(10 * random.normal());
    });
  };
  change_from(after.q, now + 1);
  change_from(after.d_o, now + 1);
  change_from(after.k, now + 1 + M - N);
  change_from(after.v, now + 1 + M - N);
  if (!options.metric.empty()) change_from(after.metric, now + 1);

  on_every_target([&] {
    const Result<float> past = run_kernel(before), changed = run_kernel(after);
    past.o.for_each([&](int64_t b, int64_t h, int64_t n, int64_t i) {
      if (n > now) return;
      RC_ASSERT(same_bits(past.o.at(b, h, n, i), changed.o.at(b, h, n, i)));
      const int64_t row = (b * options.sizes.H + h) * options.sizes.N + n;
      RC_ASSERT(same_bits(past.lse[row], changed.lse[row]));
    });
    past.dq.for_each([&](int64_t b, int64_t h, int64_t n, int64_t i) {
      if (n <= now) RC_ASSERT(same_bits(past.dq.at(b, h, n, i), changed.dq.at(b, h, n, i)));
    });
  });
}

RC_GTEST_PROP(AttentionProperties, PaddingChangesNothing, ()) {
  AttentionCase padded_options = any_case();
  AttentionSizes& sizes = padded_options.sizes;
  sizes.B = 1;
  sizes.M = sizes.N;
  const int64_t length = *rc::gen::inRange<int64_t>(1, sizes.N + 1);
  padded_options.key_lengths = {length};
  const Problem<float> padded(padded_options);

  AttentionCase options = padded_options;
  options.key_lengths.clear();
  options.sizes.N = options.sizes.M = length;
  Problem<float> shorter(options);
  const auto copy = [](const StridedArray<float>& from, StridedArray<float>& to) {
    to.for_each([&](int64_t b, int64_t h, int64_t n, int64_t d) {
      to.at(b, h, n, d) = from.at(b, h, n, d);
    });
  };
  copy(padded.q, shorter.q);
  copy(padded.k, shorter.k);
  copy(padded.v, shorter.v);
  copy(padded.d_o, shorter.d_o);
  if (!options.metric.empty()) copy(padded.metric, shorter.metric);
  for (int64_t h = 0; h < sizes.H; ++h)
    for (int64_t n = 0; n < length; ++n)
      shorter.d_lse[h * length + n] = padded.d_lse[h * sizes.N + n];

  on_every_target([&] {
    const Result<float> full = run_kernel(padded);
    Result<float> cut(options);
    copy(full.o, cut.o);
    copy(full.dq, cut.dq);
    copy(full.dk, cut.dk);
    copy(full.dv, cut.dv);
    if (!options.metric.empty()) copy(full.d_metric, cut.d_metric);
    for (int64_t h = 0; h < padded_options.sizes.H; ++h)
      for (int64_t n = 0; n < length; ++n)
        cut.lse[h * length + n] = full.lse[h * padded_options.sizes.N + n];
    RC_ASSERT(difference(cut, run_kernel(shorter), padded) == "");
    for (const auto* array : {&full.o, &full.dq, &full.dk, &full.dv}) {
      array->for_each([&](int64_t b, int64_t h, int64_t n, int64_t d) {
        if (n >= length) RC_ASSERT(array->at(b, h, n, d) == 0.0f);
      });
    }
  });
}

RC_GTEST_PROP(AttentionProperties, OrderOfKeysDoesNotMatter, ()) {
  AttentionCase options = any_case();
  options.is_causal = false;
  const Problem<float> problem(options);
  std::vector<int64_t> order(static_cast<size_t>(options.sizes.M));
  std::iota(order.begin(), order.end(), int64_t{0});
  Random random(options.seed);
  for (size_t left = order.size(); left > 1; --left)
    std::swap(order[left - 1], order[random.below(static_cast<int64_t>(left))]);
  const auto permuted = [&](const StridedArray<float>& from) {
    StridedArray<float> to(from.sizes());
    from.for_each([&](int64_t b, int64_t h, int64_t j, int64_t d) {
      to.at(b, h, j, d) = from.at(b, h, order[j], d);
    });
    return to;
  };
  Problem<float> shuffled(options);
  shuffled.k = permuted(problem.k);
  shuffled.v = permuted(problem.v);
  on_every_target([&] {
    Result<float> expected = run_kernel(problem);
    expected.dk = permuted(expected.dk);
    expected.dv = permuted(expected.dv);
    RC_ASSERT(difference(run_kernel(shuffled), expected, problem) == "");
  });
}

RC_GTEST_PROP(AttentionProperties, MetricScalesTheQuery, ()) {
  AttentionCase options = any_case();
  if (options.metric.empty()) options.metric = "BH1D";
  const Problem<float> problem(options);
  AttentionCase plain_options = options;
  plain_options.metric = "";
  Problem<float> plain(plain_options);
  plain.q.for_each([&](int64_t b, int64_t h, int64_t n, int64_t d) {
    plain.q.at(b, h, n, d) = problem.q.at(b, h, n, d) * problem.metric.at(b, h, n, d);
  });
  on_every_target([&] {
    Result<float> elliptical = run_kernel(problem);
    elliptical.d_metric = {};
    Result<float> expected = run_kernel(plain);
    expected.dq.for_each([&](int64_t b, int64_t h, int64_t n, int64_t d) {
      expected.dq.at(b, h, n, d) *= problem.metric.at(b, h, n, d);
    });
    RC_ASSERT(difference(elliptical, expected, problem) == "");
  });
}

RC_GTEST_PROP(AttentionProperties, OutputIsLinearInTheValues, ()) {
  const AttentionCase options = any_case();
  const Problem<float> first(options);
  Problem<float> second(options), sum(options);
  Random random(options.seed + 1);
  second.v.for_each([&](int64_t b, int64_t h, int64_t j, int64_t d) {
    second.v.at(b, h, j, d) = static_cast<float>(random.normal());
    sum.v.at(b, h, j, d) = 2 * first.v.at(b, h, j, d) - second.v.at(b, h, j, d);
  });
  on_every_target([&] {
    const Result<float> a = run_kernel(first), b = run_kernel(second), c = run_kernel(sum);
    const std::vector<float> o1 = a.o.values(), o2 = b.o.values(), o = c.o.values();
    // Means of a few normal numbers, hence of order 1 and each exact to some units of 2^-24.
    for (size_t i = 0; i < o.size(); ++i)
      RC_ASSERT(std::abs(o[i] - (2 * o1[i] - o2[i])) < 64 * 0x1p-24f);
  });
}

RC_GTEST_PROP(AttentionProperties, GroupedHeadsAreRepeatedHeads, ()) {
  const AttentionCase options = any_case();
  const Problem<float> grouped(options);
  AttentionCase repeated_options = options;
  repeated_options.sizes.Hk = options.sizes.H;
  Problem<float> repeated(repeated_options);
  const int64_t group = options.sizes.H / options.sizes.Hk;
  const auto repeat = [&](const StridedArray<float>& from, StridedArray<float>& to) {
    to.for_each([&](int64_t b, int64_t h, int64_t j, int64_t d) {
      to.at(b, h, j, d) = from.at(b, h / group, j, d);
    });
  };
  repeat(grouped.k, repeated.k);
  repeat(grouped.v, repeated.v);
  on_every_target([&] {
    const Result<float> wide = run_kernel(repeated);
    Result<float> expected = run_kernel(grouped);
    const Result<float> actual = run_kernel(grouped);
    const auto sum_groups = [&](const StridedArray<float>& from, StridedArray<float>& to) {
      to.for_each([&](int64_t b, int64_t hk, int64_t j, int64_t d) {
        double sum = 0;
        for (int64_t h = hk * group; h < (hk + 1) * group; ++h) sum += from.at(b, h, j, d);
        to.at(b, hk, j, d) = static_cast<float>(sum);
      });
    };
    sum_groups(wide.dk, expected.dk);
    sum_groups(wide.dv, expected.dv);
    expected.o.for_each([&](int64_t b, int64_t h, int64_t n, int64_t d) {
      expected.o.at(b, h, n, d) = wide.o.at(b, h, n, d);
    });
    expected.dq.for_each([&](int64_t b, int64_t h, int64_t n, int64_t d) {
      expected.dq.at(b, h, n, d) = wide.dq.at(b, h, n, d);
    });
    expected.lse = wide.lse;
    RC_ASSERT(difference(actual, expected, grouped) == "");
  });
}

}  // namespace
}  // namespace elliptical::kernels::test
