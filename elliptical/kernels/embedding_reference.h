// SPDX-License-Identifier: MIT
//
// The layer of embedding.h as its formula says it, one element at a time: the version to read
// first and the one the fast kernel is tested against. Same contract, without threads. Header only:
// tests evaluate it in double, and in numbers that carry error bounds.
#pragma once

#include "elliptical/kernels/dropout_reference.h"
#include "elliptical/kernels/embedding.h"

namespace elliptical::kernels {

template <class T>
void embed_reference_forward(Rows size, const EmbedInputs<T>& in, T* y) {
  for (int64_t i = 0; i < size.rows * size.C; ++i) {
    const int64_t r = i / size.C, c = i % size.C;
    y[i] =
        (T(in.scale) * in.table[in.tokens[r] * size.C + c] + in.positions[r % in.N * size.C + c]) *
        T(keep_factor(in.dropout, i));
  }
}

}  // namespace elliptical::kernels
