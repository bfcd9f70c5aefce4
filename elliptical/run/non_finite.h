// SPDX-License-Identifier: MIT
//
// Where a NaN or an infinity came from. The step is computed once more while torch's operations are
// watched: those that read a parameter are the layers, and the first of them with a non-finite
// result is the answer. The model needs no hooks for it.
#pragma once

#include <functional>
#include <string>

#include "elliptical/store/tensor_files.h"

namespace elliptical::run {

/// "layers.3.feedforward (aten::linear)", or what else is known: a parameter that is not finite
/// itself, or none of the layers. `forward` computes the loss.
std::string first_non_finite_layer(const store::NamedTensors& parameters,
                                   const std::function<void()>& forward);

/// The first that holds a NaN or an infinity; empty: all are finite.
std::string non_finite_tensor(const store::NamedTensors& tensors);

/// The parameter whose gradient is not finite, nearest to the loss; empty: all are finite.
std::string non_finite_gradient(const store::NamedTensors& parameters);

}  // namespace elliptical::run
