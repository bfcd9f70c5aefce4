// SPDX-License-Identifier: MIT
//
// Several attempts on the same pictures, one after the other: each sees only the pictures that no
// earlier one broke.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>

#include "elliptical/attack/attack.h"

namespace elliptical::attack {

/// What became of n pictures.
struct Attempt {
  at::Tensor x;       ///< (n, C, H, W); only read where broken
  at::Tensor broken;  ///< (n) bool
};

/// Runs `attempt(i, survivors)` for i = 0, 1, ... on the pictures that are classified rightly so
/// far. The result is the clean picture where all attempts failed and where the model was wrong to
/// begin with. `after(i, robust)`, if given, gets the survivors (B) bool of each attempt.
at::Tensor try_in_turn(
    const Problem& problem,
    int64_t num_attempts,
    const std::function<Attempt(int64_t index, const Problem& survivors)>& attempt,
    const std::function<void(int64_t index, const at::Tensor& robust)>& after = {});

/// (B) -> (B, 1, 1, 1)
at::Tensor per_picture(const at::Tensor& numbers);

}  // namespace elliptical::attack
