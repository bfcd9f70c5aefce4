// SPDX-License-Identifier: MIT
//
// One attention problem of the tests: its sizes and options, drawn from a seed alone, so that a
// failing case is rerun by its number (see `describe`). Numbers and memory come in problem.h.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "elliptical/kernels/attention.h"
#include "tests/kernels/random.h"
#include "tests/kernels/strided_array.h"

namespace elliptical::kernels::test {

enum class MetricKind { none, row, per_query };

/// A mask with stride 0 along the axes (b, h, n, key) where `expanded` says so.
struct MaskShape {
  bool present = false;
  std::array<bool, 4> expanded{};
};

struct AttentionCase {
  uint64_t seed = 0;
  AttentionSizes sizes;
  MetricKind metric = MetricKind::none;
  std::array<bool, 2> metric_expanded{};  ///< one metric for all b, for all h
  MaskShape mask_add, mask_keep;
  std::vector<int64_t> key_lengths;  ///< empty: none
  bool is_causal = false;
  double scale = 1.0;
  double dropout_p = 0.0;
  double spread = 1.0;  ///< standard deviation of q and k
  bool has_d_lse = true;
  bool plain_memory = false;  ///< contiguous everywhere; else each array gets a random layout

  /// Everything needed to reproduce, on one line.
  std::string describe() const;
};

enum class CaseSize {
  small,  ///< 0, 1, vector lanes +-1, primes; every option
  block,  ///< query and key counts around the kernel's block sizes
  few,    ///< a few queries alone or behind whole vectors, which mostly see all keys
};

AttentionCase random_case(uint64_t seed, CaseSize size);

/// Any strides at all. `expanded` axes are chosen by the caller.
Layout random_input_layout(Random& random, const std::array<bool, 4>& expanded = {});
/// The same without stride 0 and with elements of a row side by side, as outputs must be.
Layout random_output_layout(Random& random);

}  // namespace elliptical::kernels::test
