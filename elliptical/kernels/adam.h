// SPDX-License-Identifier: MIT
//
// Adam (Kingma and Ba 2015) and AdamW in one pass over arrays: with g = gradient_scale * gradient,
//
//   m = beta1 m + (1 - beta1) g,   v = beta2 v + (1 - beta2) g^2
//   p = p (1 - learning_rate weight_decay) - step_size m / (sqrt(v) * second_factor + eps)
//
// where step_size and second_factor carry the bias corrections. Contiguous float32. Same bits for
// any number of threads. The slow, obvious version is adam_reference.h.
#pragma once

#include <cstdint>
#include <vector>

#include "elliptical/kernels/parallel.h"

namespace elliptical::kernels {

struct AdamArrays {
  int64_t size = 0;
  float* parameter = nullptr;
  const float* gradient = nullptr;
  float* first = nullptr;   ///< m
  float* second = nullptr;  ///< v
};

struct AdamFactors {
  float beta1 = 0, beta2 = 0, eps = 0;
  float gradient_scale = 1;
  float keep = 1;  ///< 1 - learning_rate * weight_decay
  float step_size = 0;
  float second_factor = 1;
};

void adam(const std::vector<AdamArrays>& arrays,
          const AdamFactors& factors,
          const ParallelFor& parallel_for);

/// A read-only array.
struct FloatArray {
  int64_t size = 0;
  const float* data = nullptr;
};

/// Sum of squares over all arrays, in double.
double sum_of_squares(const std::vector<FloatArray>& arrays, const ParallelFor& parallel_for);

}  // namespace elliptical::kernels
