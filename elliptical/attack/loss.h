// SPDX-License-Identifier: MIT
//
// What attacks make large, one number a picture, and how they differentiate it. Logits are (B, K),
// labels (B) int64; pi_1, pi_2, ... are the classes in the order of falling logits.
//
//   cross entropy  -log softmax(z)_y
//   margin         z_y - max_{j != y} z_j, negative where misclassified (attacks make it small)
//   DLR            -(z_y - max_{j != y} z_j) / (z_pi1 - z_pi3 + 1e-12)
//   targeted DLR   -(z_y - z_t) / (z_pi1 - (z_pi3 + z_pi4) / 2 + 1e-12)
//
// DLR (difference of logits ratio, Croce and Hein 2020) does not change when logits are shifted or
// scaled, which defeats cross entropy by saturation. It needs 3 classes, the targeted one 4.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>

namespace elliptical::attack {

/// Pictures (B, C, H, W) -> logits (B, K), differentiable unless an attack is to see no gradient.
/// Between two calls an attack waits for nothing, so this is also where whoever runs it counts
/// passes and stops it, by throwing.
using LogitsFn = std::function<at::Tensor(const at::Tensor& x)>;

at::Tensor cross_entropy(const at::Tensor& logits, const at::Tensor& y);
at::Tensor margin(const at::Tensor& logits, const at::Tensor& y);
at::Tensor dlr(const at::Tensor& logits, const at::Tensor& y);
at::Tensor targeted_dlr(const at::Tensor& logits, const at::Tensor& y, const at::Tensor& target);

/// Logits (B, K) of class `classes` (B) each: (B).
at::Tensor logits_of(const at::Tensor& logits, const at::Tensor& classes);

/// (B) bool: the largest logit is that of the label.
at::Tensor is_correct(const at::Tensor& logits, const at::Tensor& y);

/// The classes in the order of falling logits, the label first: (B, K).
at::Tensor ranked_classes(const at::Tensor& logits, const at::Tensor& y);

/// Without a graph for gradients.
at::Tensor plain_logits(const LogitsFn& logits, const at::Tensor& x);

struct LossGradient {
  at::Tensor logits;    ///< (B, K)
  at::Tensor loss;      ///< (B)
  at::Tensor gradient;  ///< of the loss of each picture with respect to it, (B, C, H, W)
};

/// `num_passes` above 1: means over that many passes, for models that draw random numbers
/// (expectation over transformation). Nothing but the picture gets a gradient.
LossGradient loss_gradient(const LogitsFn& logits,
                           const at::Tensor& x,
                           const std::function<at::Tensor(const at::Tensor& logits)>& loss,
                           int64_t num_passes = 1);

}  // namespace elliptical::attack
