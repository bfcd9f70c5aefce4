// SPDX-License-Identifier: MIT
//
// The metric of elliptical attention from the change of the values between two layers, on raw
// pointers and strides. For batch item b, head h, coordinate i:
//
//   s[i] = mean_n |v[n,i] - v_prev[n,i]| / delta            (paper: section 3.3)
//   m[i] = s[i] / max_j s[j]                                (or / mean_j s[j], or s[i] itself)
//
// over all real tokens n, or, for row t of the prefix form, over the real tokens n <= t. A row
// whose values did not change at all gives m = 1. Same bits for any number of threads.
// `metric_reference.h` is the slow, obvious version.
#pragma once

#include <cstdint>

#include "elliptical/kernels/attention.h"
#include "elliptical/kernels/parallel.h"

namespace elliptical::kernels {

enum class MetricScaling { kMax, kMean, kNone };

template <class T>
struct MetricInputs {
  int64_t B = 0, H = 0, N = 0, D = 0;
  View<const T> v;                   ///< (B, H, N, D)
  View<const T> v_prev;              ///< (B, H, N, D), of the previous layer
  const int64_t* lengths = nullptr;  ///< (B) tokens from that index on are padding. Null: none.
  bool prefix = false;               ///< one row per token instead of one for all
  MetricScaling scaling = MetricScaling::kMax;
  double delta = 1.0;
};

/// Writes `metric`, contiguous: (B, H, N, D) for the prefix form, else (B, H, 1, D).
void metric_difference(const MetricInputs<float>& in,
                       float* metric,
                       const ParallelFor& parallel_for);

}  // namespace elliptical::kernels
