// SPDX-License-Identifier: MIT
//
// Models small enough to know the answer: linear ones, and a trained net on generated pictures.
// They compute each picture by itself, so that its logits do not depend on its batch, to the bit.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "elliptical/attack/attack.h"

namespace elliptical::attack::testing {

/// Numbers that look random, of any shape, the same on every machine.
at::Tensor wave(at::IntArrayRef sizes, double phase = 0.0, at::ScalarType dtype = at::kFloat);

/// z = <W, x> + b with W (K, C, H, W), b (K).
LogitsFn linear_model(const at::Tensor& W, const at::Tensor& b);

/// Pictures (n, 3, 8, 8) in [0, 1] of five classes: a class is a pattern, seen through noise that
/// makes some pictures hard.
struct Labelled {
  at::Tensor x, y;
};
Labelled generated_pictures(int64_t n, at::ScalarType dtype = at::kFloat);

/// Two layers with a tanh, trained on such pictures until most are right.
LogitsFn trained_net(at::ScalarType dtype = at::kFloat);

/// The box [0, 1].
Threat pixel_threat(double eps);

Pictures with_keys(const Labelled& labelled, uint64_t seed = 1, int64_t first = 0);

/// Options of an attack of the table, made cheap, with "key=value" assignments after that.
ChosenOptions cheap_options(const std::string& attack,
                            const std::vector<std::string>& assignments = {});

/// How many pictures the model gets right.
int64_t num_correct(const LogitsFn& logits, const at::Tensor& x, const at::Tensor& y);

}  // namespace elliptical::attack::testing
