// SPDX-License-Identifier: MIT
//
// Simultaneous perturbation stochastic approximation (Uesato et al. 2018): no gradient of the
// model. The gradient of the margin l = z_y - max_{j != y} z_j is estimated from pairs of
// evaluations around a point p, with random signs v_s,
//
//   g = mean_s (l(p + delta v_s) - l(p - delta v_s)) / (2 delta) v_s,
//
// and Adam makes the margin small with it, projected after each step. Every picture is changed; no
// early stop. As released with the paper (and in the library it used) p is 2 x, because the picture
// stands where its perturbation should: the estimate then never depends on what was found so far.
#pragma once

#include <functional>

#include "elliptical/attack/attack.h"

namespace elliptical::attack {

enum class SpsaPoint { kCurrent, kTwicePicture };
std::string_view to_string(SpsaPoint point);

struct SpsaOptions : Options {
  int64_t steps = 40;
  int64_t pairs = 128;
  double delta = 0.01;
  double learning_rate = 0.01;
  SpsaPoint point = SpsaPoint::kCurrent;
  int64_t pass_size = 256;
  void visit(FieldList& fields) override;
  std::unique_ptr<Options> clone() const override { return std::make_unique<SpsaOptions>(*this); }
};

std::unique_ptr<Attack> make_spsa(const Options& options);

/// The estimate g (B, C, H, W) of the gradient of `loss` at p (B, C, H, W). `loss(points, owner)`
/// gives the loss (R) of R points, the owner (R) int64 of a point being the number of its picture;
/// it gets at most `pass_size` points (at least 2) at a time.
at::Tensor spsa_gradient(
    const std::function<at::Tensor(const at::Tensor& points, const at::Tensor& owner)>& loss,
    const at::Tensor& p,
    const PictureKeys& keys,
    const SpsaOptions& options);

}  // namespace elliptical::attack
