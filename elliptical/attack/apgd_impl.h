// SPDX-License-Identifier: MIT
//
// One run of Auto-PGD over n pictures, for the attacks of apgd.h and their tests.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>

#include "elliptical/attack/apgd.h"
#include "elliptical/attack/survivors_impl.h"

namespace elliptical::attack {

/// The loss (n) that a run makes large; `target` is only read by targeted ones.
using ApgdLoss = std::function<at::Tensor(
    const at::Tensor& logits, const at::Tensor& y, const at::Tensor& target)>;

/// Of the pictures that the run still works on.
struct ApgdState {
  at::Tensor place;      ///< (n) their numbers in the problem
  at::Tensor y, target;  ///< (n)
  at::Tensor x, x_old;   ///< (n, C, H, W) this iterate and the one before
  at::Tensor gradient;   ///< (n, C, H, W) at x
  at::Tensor loss;       ///< (n) of the last step
  at::Tensor best_x, best_gradient, best_loss;
  at::Tensor best_loss_before;  ///< (n) at the last checkpoint
  at::Tensor was_halved;        ///< (n) bool, at the last checkpoint
  at::Tensor num_up;            ///< (n) steps since then that raised the loss
  at::Tensor step;              ///< (n, 1, 1, 1)
  void select(const at::Tensor& indices);
};

/// `keys`: of the random start. `look`, if given, sees the state at the start (number 0) and after
/// each step.
Attempt run_apgd(const Problem& problem,
                 const ApgdLoss& loss,
                 const at::Tensor& target,
                 const PictureKeys& keys,
                 const ApgdOptions& options,
                 const std::function<void(int64_t number, const ApgdState& state)>& look = {});

}  // namespace elliptical::attack
