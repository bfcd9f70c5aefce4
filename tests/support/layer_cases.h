// SPDX-License-Identifier: MIT
//
// A fused layer against its composite form: values and every gradient, with a bound.
#pragma once

#include <ATen/core/Tensor.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

namespace elliptical::support {

using Tensors = std::vector<at::Tensor>;
using LayerFunction = std::function<at::Tensor(const Tensors&)>;

/// Pseudo-random, the same for every dtype and without a generator's state: what gradients combine.
at::Tensor direction(const at::Tensor& like);

/// The function's value, then the gradients of a fixed random combination of its elements with
/// respect to each input (empty where an input is not used).
Tensors values_and_gradients(const LayerFunction& function, const Tensors& inputs);

/// `fused` on float32 inputs against `composite` on the same inputs in double. An element may be
/// off by 2e-5 of the largest in its tensor: sums of a few thousand float32 terms, and an order of
/// magnitude of room.
::testing::AssertionResult layers_match(const LayerFunction& fused,
                                        const LayerFunction& composite,
                                        const Tensors& inputs);

/// Fails the running test where a value or a gradient of `fused` has other bits on several threads
/// than on one.
void expect_threads_change_no_bit(const LayerFunction& fused,
                                  const Tensors& inputs,
                                  const std::string& name);

}  // namespace elliptical::support
