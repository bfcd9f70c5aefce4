// SPDX-License-Identifier: MIT
//
// A model that tells pictures apart, as attacks see it. Pictures are pixels (B, 3, H, W) in [0, 1];
// what the network itself reads are normalized pixels, (pixel - mean) / std per channel. Attacks of
// the strict profile change pixels, those of the published profile change normalized pixels.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "elliptical/nn/pass.h"

namespace elliptical::tasks {

class Classifier {
 public:
  virtual ~Classifier() = default;
  virtual int64_t num_classes() const = 0;
  virtual at::Tensor normalize(const at::Tensor& pixels) const = 0;
  /// normalized (B, 3, H, W) -> (B, K); differentiable.
  virtual at::Tensor logits(const at::Tensor& normalized, nn::Pass& pass) = 0;
};

}  // namespace elliptical::tasks
