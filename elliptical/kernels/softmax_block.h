// SPDX-License-Identifier: MIT
//
// A softmax over many words, one block of words at a time. Logits of a block come from a matrix
// product; both passes work in place while the block is in the cache:
//
//   softmax_block_exp       e = exp(z + bias - max),  max and sum of each row, z + bias of a target
//   softmax_block_gradient  d = e * factor[row], minus step[row] at the row's target; column sums
//
// With factor = step * exp(max - logsumexp) the second is step * (softmax - one-hot), the gradient
// of step * (-log p). Contiguous float32 (rows, words). Same bits for any number of threads.
// The slow, obvious version is softmax_block_reference.h.
#pragma once

#include <cstdint>

#include "elliptical/kernels/parallel.h"

namespace elliptical::kernels {

struct SoftmaxBlock {
  int64_t rows = 0, words = 0;
  float* values = nullptr;           ///< (rows, words)
  const int64_t* targets = nullptr;  ///< (rows): a word of this softmax
  int64_t first_word = 0;            ///< the block has words [first_word, first_word + words)
};

/// `target_logit[row]` is written only where the target is in this block.
void softmax_block_exp(const SoftmaxBlock& block,
                       const float* bias,
                       float* max,
                       float* sum,
                       float* target_logit,
                       const ParallelFor& parallel_for);

/// Column sums go to d_bias (words), which is added to when `accumulate`.
void softmax_block_gradient(const SoftmaxBlock& block,
                            const float* factor,
                            const float* step,
                            float* d_bias,
                            bool accumulate,
                            const ParallelFor& parallel_for);

}  // namespace elliptical::kernels
