// SPDX-License-Identifier: MIT
//
// Class attention (Touvron et al., "Going deeper with image transformers", ICCV 2021) in the form
// of FAN: only the class token, the first one, looks at the others.
//
//   n = norm1(x);  x = x + gamma1 * [attend(n_cls, n, n); n_patches]
//   x = norm2(x);  x = x + [gamma2 * mlp(x_cls); x_patches]
#pragma once

#include "elliptical/nn/feedforward/feed_forward.h"
#include "elliptical/nn/linear.h"
#include "elliptical/nn/norm.h"

namespace elliptical::nn {

class ClassBlock : public torch::nn::Module {
 public:
  ClassBlock(int64_t dim, int64_t num_heads, std::shared_ptr<FeedForward> mlp);

  /// (B, 1 + N, C) -> (B, 1 + N, C).
  at::Tensor forward(const at::Tensor& x, Pass& pass) const;

 private:
  at::Tensor attend(const at::Tensor& normed) const;

  int64_t num_heads_;
  std::shared_ptr<Norm> norm1_, norm2_;
  std::shared_ptr<Linear> q_, k_, v_, proj_;
  std::shared_ptr<FeedForward> mlp_;
  at::Tensor gamma1_, gamma2_;  ///< (C), start at 1
};

}  // namespace elliptical::nn
