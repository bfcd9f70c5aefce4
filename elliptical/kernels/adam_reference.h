// SPDX-License-Identifier: MIT
//
// A step of adam.h as its formula says it, one element at a time: the version to read first and the
// one the fast kernel is tested against. Header only: tests evaluate it in double, and in numbers
// that carry error bounds.
#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

#include "elliptical/kernels/adam.h"

namespace elliptical::kernels {

template <class T>
void adam_reference(
    int64_t size, const AdamFactors& f, const T* gradient, T* parameter, T* first, T* second) {
  using std::sqrt;
  for (int64_t i = 0; i < size; ++i) {
    T &p = parameter[i], &m = first[i], &v = second[i];
    const T g = T(f.gradient_scale) * gradient[i];
    m = T(f.beta1) * m + T(1.0 - f.beta1) * g;
    v = T(f.beta2) * v + T(1.0 - f.beta2) * (g * g);
    p = p * T(f.keep) - T(f.step_size) * (m / (sqrt(v) * T(f.second_factor) + T(f.eps)));
  }
}

inline double sum_of_squares_reference(const std::vector<FloatArray>& arrays) {
  double sum = 0;
  for (const FloatArray& array : arrays) {
    for (int64_t i = 0; i < array.size; ++i) sum += double{array.data[i]} * double{array.data[i]};
  }
  return sum;
}

}  // namespace elliptical::kernels
