// SPDX-License-Identifier: MIT
//
// The smallest step, in the maximum norm, that leads from a point to a hyperplane without leaving a
// box:
//
//   min |d|_inf   with  <w, t + d> = b,  low <= t + d <= high
//
// All coordinates move by the same lambda until they meet the box: d_i = -s sign(w_i) min(lambda,
// p_i) with s the side of the plane that t is on and p_i the room towards it, and lambda solves
// sum_i |w_i| min(lambda, p_i) = |<w, t> - b|. The left side is concave and piecewise linear, so
// Newton's method from 0 rises to the solution in finitely many steps, without sorting p.
#pragma once

#include <ATen/core/Tensor.h>

#include <optional>

namespace elliptical::attack {

/// t, w (B, n), b (B); low and high broadcast with t, absent ones are infinite. Where the box does
/// not reach the hyperplane the step goes as far towards it as it can. Gives d (B, n).
at::Tensor step_to_hyperplane(const at::Tensor& t,
                              const at::Tensor& w,
                              const at::Tensor& b,
                              const std::optional<at::Tensor>& low,
                              const std::optional<at::Tensor>& high);

}  // namespace elliptical::attack
