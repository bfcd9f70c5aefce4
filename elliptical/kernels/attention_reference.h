// SPDX-License-Identifier: MIT
//
// Attention as the formula says it, one query at a time: the version to read first and the one the
// fast kernels are tested against. Instantiated for float and double.
#pragma once

#include "elliptical/kernels/attention.h"

namespace elliptical::kernels {

/// Same contract as `attention_forward`; row_max and row_sum are in natural units (s, not s * log2
/// e).
template <class T>
void attention_reference_forward(const AttentionInputs<T>& in, const AttentionOutputs<T>& out);

/// Same contract as `attention_backward`, fed by `attention_reference_forward`.
template <class T>
void attention_reference_backward(const AttentionInputs<T>& in, const AttentionGradients<T>& grad);

}  // namespace elliptical::kernels
