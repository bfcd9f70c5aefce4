// SPDX-License-Identifier: MIT
//
// Sinusoidal positions (Vaswani et al. 2017) in the layout of Transformer-XL: all sines, then all
// cosines:
//
//   [sin(p f_0) .. sin(p f_{C/2-1}), cos(p f_0) .. ], f_j = 10000^(-2j/C)
//
// A position is counted from the start of the text (`forward`), or, as in the paper's language
// model, from the end of the window (`reverse`): token t of n has p = n-1-t.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <string_view>

namespace elliptical::nn {

enum class Positions { kForward, kReverse };
std::string_view to_string(Positions positions);
Positions positions_from(const std::string& name);

/// Rows (count, C) for positions first .. first + count - 1, double. C must be even.
at::Tensor sinusoids(int64_t first, int64_t count, int64_t dim);

}  // namespace elliptical::nn
