// SPDX-License-Identifier: MIT
//
// Tokens as vectors, in one pass over memory, on contiguous float32:
//
//   y[t] = drop(scale * table[tokens[t]] + positions[t % N])
//
// Its gradient is that of dropout (`scaled_dropout`), added up by token by the caller. Same bits for
// any number of threads. The slow, obvious version is embedding_reference.h.
#pragma once

#include <cstdint>

#include "elliptical/kernels/dropout.h"
#include "elliptical/kernels/parallel.h"
#include "elliptical/kernels/rows.h"

namespace elliptical::kernels {

template <class T>
struct EmbedInputs {
  const T* table = nullptr;         ///< (V, C)
  const int64_t* tokens = nullptr;  ///< (rows)
  const T* positions = nullptr;     ///< (N, C)
  int64_t N = 1;
  double scale = 1;
  ElementDropout dropout;
};

void embed_forward(Rows size,
                   const EmbedInputs<float>& in,
                   float* y,
                   const ParallelFor& parallel_for);

}  // namespace elliptical::kernels
