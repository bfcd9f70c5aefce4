// SPDX-License-Identifier: MIT
#include "tests/kernels/random_case.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace elliptical::kernels::test {
namespace {

constexpr int64_t kSmallSizes[] = {1,  1,  2,  3,  4,  5,  7,  8,  9,  11, 13,
                                   15, 16, 17, 23, 31, 32, 33, 37, 47, 49};
constexpr int64_t kBlockSizes[] = {1,   17,  47,  63,  64,  65,  95,  96,  97,  127,
                                   128, 129, 191, 192, 193, 197, 255, 256, 257, 300};
constexpr int64_t kHeadWidths[] = {1, 2, 3, 4, 5, 7, 8, 9, 12, 15, 16, 17, 24, 31, 32, 33};
constexpr int64_t kBlockHeadWidths[] = {1, 8, 16, 17, 24, 32, 48, 64, 65, 80, 128};

void draw_sizes(Random& random, CaseSize size, AttentionSizes& sizes) {
  if (size == CaseSize::small) {
    const auto maybe_zero = [&](int64_t value) { return random.chance(0.015) ? 0 : value; };
    sizes.B = maybe_zero(1 + random.below(3));
    sizes.Hk = 1 + random.below(2);
    sizes.H = maybe_zero(sizes.Hk * (1 + random.below(3)));
    sizes.N = maybe_zero(random.pick(kSmallSizes));
    sizes.M = maybe_zero(random.chance(0.5) ? sizes.N : random.pick(kSmallSizes));
    sizes.D = random.pick(kHeadWidths);
    sizes.Dv = random.chance(0.5) ? sizes.D : random.pick(kHeadWidths);
  } else if (size == CaseSize::few) {
    sizes.B = 1 + random.below(2);
    sizes.Hk = 1;
    sizes.H = 1 + random.below(2);
    sizes.N = 16 * random.below(10) + 1 + random.below(4);
    sizes.M = random.chance(0.3) ? sizes.N : random.pick(kBlockSizes);
    sizes.D = 16 * (1 + random.below(6));
    sizes.Dv = random.chance(0.5) ? sizes.D : 16 * (1 + random.below(6));
  } else {
    sizes.B = 1;
    sizes.Hk = 1;
    sizes.H = random.chance(0.2) ? 2 : 1;
    sizes.N = random.pick(kBlockSizes);
    sizes.M = random.chance(0.5) ? sizes.N : random.pick(kBlockSizes);
    sizes.D = random.pick(kBlockHeadWidths);
    sizes.Dv = random.chance(0.5) ? sizes.D : random.pick(kBlockHeadWidths);
  }
}

/// `letters`, each of which is 1 where `expanded` says so.
bench::Axes axes(bench::Axes letters, const std::array<bool, 4>& expanded) {
  for (size_t axis = 0; axis < expanded.size(); ++axis)
    if (expanded[axis]) letters[axis] = '1';
  return letters;
}

bench::Axes draw_mask(Random& random, double chance) {
  const bool present = random.chance(chance);
  std::array<bool, 4> expanded;
  for (bool& each : expanded) each = random.chance(0.5);
  return present ? axes("BHNM", expanded) : "";
}

}  // namespace

AttentionCase random_case(uint64_t seed, CaseSize size) {
  Random random(seed);
  AttentionCase result;
  result.seed = seed;
  draw_sizes(random, size, result.sizes);
  const double default_scale = 1.0 / std::sqrt(static_cast<double>(result.sizes.D));

  constexpr const char* metrics[] = {"", "BH1D", "BHND"};
  result.metric = random.pick(metrics);
  const bool over_b = random.chance(0.5), over_h = random.chance(0.5);
  if (!result.metric.empty()) result.metric = axes(result.metric, {over_b, over_h, false, false});
  result.mask_add = draw_mask(random, 0.25);
  result.mask_keep = draw_mask(random, 0.25);
  if (random.chance(0.3)) {
    for (int64_t b = 0; b < result.sizes.B; ++b)
      result.key_lengths.push_back(random.below(result.sizes.M + 2));  // M + 1 counts as M
  }
  result.is_causal = random.chance(0.4);
  const double scales[] = {default_scale, default_scale, default_scale, 1.0, -default_scale, 0.0};
  result.scale = random.pick(scales);
  const double dropouts[] = {0.0, 0.0, 0.0, 0.1, 0.5, 0.9};
  result.dropout_p = random.pick(dropouts);
  const double spreads[] = {0.1, 1.0, 1.0, 3.0};
  result.spread = random.pick(spreads);
  result.has_d_lse = random.chance(0.5);
  result.plain_memory = random.chance(0.3);
  if (size == CaseSize::few && random.chance(0.8)) {
    result.mask_add = result.mask_keep = "";
    result.is_causal = result.is_causal && result.sizes.N == 1;
  }
  return result;
}

Layout random_input_layout(Random& random, const std::array<bool, 4>& expanded) {
  Layout layout;
  for (int last = 3; last > 0; --last)
    std::swap(layout.order[last], layout.order[random.below(last + 1)]);
  for (int axis = 0; axis < 4; ++axis) {
    layout.gap[axis] = random.chance(0.3) ? 1 + random.below(3) : 0;
    layout.reversed[axis] = random.chance(0.2);
  }
  layout.expanded = expanded;
  layout.offset = random.below(5);
  return layout;
}

Layout random_output_layout(Random& random) {
  Layout layout = random_input_layout(random);
  int& place_of_d = *std::find(layout.order.begin(), layout.order.end(), 3);
  std::swap(place_of_d, layout.order[3]);
  layout.reversed[3] = false;
  return layout;
}

}  // namespace elliptical::kernels::test
