// SPDX-License-Identifier: MIT
//
// The exact Gaussian error linear unit on rows with a bias, forward and backward, in one pass:
//
//   y = z Phi(z),  z = x + bias,  Phi(z) = (1 + erf(z / sqrt(2))) / 2
//   dy/dz = Phi(z) + z phi(z),    phi(z) = exp(-z^2 / 2) / sqrt(2 pi)
//
// Both need the same exponential, so the backward makes y once more instead of reading it. Errors
// are below 2e-7 times max(1, |z|). Everything is contiguous float32. Same bits for any number of
// threads.
#pragma once

#include "elliptical/kernels/feedforward.h"

namespace elliptical::kernels {

/// x becomes z unless `keep_z` is false. y may be x when it is.
void bias_gelu_forward(
    Rows size, float* x, const float* bias, bool keep_z, float* y, const ParallelFor& parallel_for);

/// z is the forward's. Writes y once more, dz, and d_bias, the sum of dz over rows. dz may be dy.
void bias_gelu_backward(Rows size,
                        const float* dy,
                        const float* z,
                        float* y,
                        float* dz,
                        float* d_bias,
                        const ParallelFor& parallel_for);

}  // namespace elliptical::kernels
