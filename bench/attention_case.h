// SPDX-License-Identifier: MIT
//
// One call of attention: its sizes, its options, and where its numbers come from, not the numbers. A
// case of the bench (cases.h), of the ops' tests (tests/support/attention_cases.h) and of the kernels'
// tests (tests/kernels/random_case.h) is of this one type, so that what is timed can be tested and the
// other way round. It knows neither torch nor memory: bench/problem.h and tests/support/attention_data.h
// make tensors of it, tests/kernels/problem.h arrays that lie in memory in any order.
#pragma once

#include <array>
#include <cstdint>
#include <iosfwd>
#include <optional>
#include <string>
#include <vector>

#include "elliptical/kernels/attention.h"

namespace elliptical::bench {

/// The axes of an array that may be broadcast, by their letters: "B1ND" has numbers for each batch
/// item, query and coordinate, which all heads share. Axes in front may be left out ("NM"). Empty:
/// there is no such array.
using Axes = std::string;

/// Which of the four axes are broadcast.
std::array<bool, 4> broadcast_axes(const Axes& axes);

struct AttentionCase {
  std::string name = {};
  kernels::AttentionSizes sizes = {.B = 2, .H = 2, .Hk = 2, .N = 5, .M = 5, .D = 3, .Dv = 4};
  Axes metric = {};                       ///< of "BHND"
  Axes mask_add = {}, mask_keep = {};     ///< of "BHNM"
  std::vector<int64_t> key_lengths = {};  ///< one for each batch item; empty: none
  bool is_causal = false;
  std::optional<double> scale = {};  ///< 1 / sqrt(D) when absent
  double dropout_p = 0.0;
  bool has_d_lse = true;  ///< backward is given a gradient of lse

  uint64_t seed = 1;          ///< of all its numbers
  double spread = 1.0;        ///< standard deviation of q and k
  bool plain_memory = false;  ///< contiguous everywhere; where memory is ours, else in any layout

  double logit_scale() const;
  /// One row of the metric serves all queries.
  bool has_metric_row() const;
  /// What a tensor with these axes has as sizes.
  std::vector<int64_t> shape_of(const Axes& axes) const;
  /// Everything needed to reproduce, on one line.
  std::string describe() const;
};

std::ostream& operator<<(std::ostream& stream, const AttentionCase& shape);

/// N tokens that attend to each other, with a metric of one row for each head.
AttentionCase self_attention(int64_t B, int64_t H, int64_t N, int64_t D);

}  // namespace elliptical::bench
