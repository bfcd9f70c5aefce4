// SPDX-License-Identifier: MIT
#include "elliptical/kernels/attention.h"

#include "elliptical/kernels/attention_reference.h"

namespace elliptical::kernels {

void attention_forward(const AttentionInputs<float>& in,
                       const AttentionOutputs<float>& out,
                       const ParallelFor&) {
  attention_reference_forward(in, out);
}

void attention_backward(const AttentionInputs<float>& in,
                        const AttentionGradients<float>& grad,
                        const ParallelFor&) {
  attention_reference_backward(in, grad);
}

}  // namespace elliptical::kernels
