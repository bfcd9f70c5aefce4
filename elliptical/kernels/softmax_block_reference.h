// SPDX-License-Identifier: MIT
//
// The two passes of softmax_block.h as their formulas say them, one word at a time: the version to
// read first and the one the fast kernel is tested against. `block.values` is read only: results go
// to arrays beside it. Header only: tests evaluate it in double, and in numbers that carry error
// bounds.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "elliptical/kernels/softmax_block.h"

namespace elliptical::kernels {

/// Of word w in row r, rounded to float once: maxima and targets are exactly these.
inline float softmax_logit(const SoftmaxBlock& block, const float* bias, int64_t r, int64_t w) {
  return block.values[r * block.words + w] + bias[w];
}

/// An exponent, a - b. A number that carries bounds says here what the kernel loses of it.
template <class T>
T softmax_exponent(float a, float b) {
  return T(double{a} - double{b});
}

/// e (rows, words), max and sum (rows).
template <class T>
void softmax_block_exp_reference(
    const SoftmaxBlock& block, const float* bias, float* max, T* e, T* sum, float* target_logit) {
  using std::exp;
  for (int64_t r = 0; r < block.rows; ++r) {
    max[r] = -3.4e38f;
    for (int64_t w = 0; w < block.words; ++w)
      max[r] = std::max(max[r], softmax_logit(block, bias, r, w));
    sum[r] = T();
    for (int64_t w = 0; w < block.words; ++w) {
      T& exponential = e[r * block.words + w];
      exponential = exp(softmax_exponent<T>(softmax_logit(block, bias, r, w), max[r]));
      sum[r] += exponential;
    }
    const int64_t target = block.targets[r] - block.first_word;
    if (0 <= target && target < block.words)
      target_logit[r] = softmax_logit(block, bias, r, target);
  }
}

/// d (rows, words) from the e in `block.values`; its column sums are added to d_bias (words).
template <class T>
void softmax_block_gradient_reference(
    const SoftmaxBlock& block, const float* factor, const float* step, T* d, T* d_bias) {
  for (int64_t r = 0; r < block.rows; ++r) {
    for (int64_t w = 0; w < block.words; ++w) {
      const int64_t i = r * block.words + w;
      d[i] = T(block.values[i]) * T(factor[r]);
      if (block.targets[r] == block.first_word + w) d[i] -= T(step[r]);
      d_bias[w] += d[i];
    }
  }
}

}  // namespace elliptical::kernels
