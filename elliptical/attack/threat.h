// SPDX-License-Identifier: MIT
//
// What an attack may do: change each number of a picture by at most eps, and stay in a box. As
// floats can not hold x - eps and x + eps, the set is kept as the outermost floats that lie within
// them, so that "inside the ball" needs no tolerance:
//
//   lower <= x_adv <= upper  implies  |x_adv - x| <= eps, computed in double,
//                            and      low <= x_adv <= high
//
// A projection onto the ball and then onto the box is one clamp to these bounds, also where the
// picture itself lies outside the box.
#pragma once

#include <ATen/core/Tensor.h>

#include <optional>

namespace elliptical::attack {

struct Threat {
  double eps = 0;
  /// Of valid pictures: scalars, or per channel (C, 1, 1). Absent: no bound.
  std::optional<at::Tensor> low, high;
};

/// A Threat around pictures x (B, C, H, W).
struct FeasibleSet {
  FeasibleSet(const at::Tensor& pictures, const Threat& what);

  at::Tensor project(const at::Tensor& v) const;
  /// Onto the box alone.
  at::Tensor into_box(const at::Tensor& v) const;
  /// The corner in `direction`: upper where it is above 0, lower where it is below, else x itself,
  /// projected.
  at::Tensor corner(const at::Tensor& direction) const;
  /// (B) bool: no number is further than eps from the picture's.
  at::Tensor in_ball(const at::Tensor& x_adv) const;
  /// (B) bool: lies between lower and upper, or is the picture itself.
  at::Tensor holds(const at::Tensor& x_adv) const;
  FeasibleSet select(const at::Tensor& indices) const;

  Threat threat;
  at::Tensor x;             ///< (B, C, H, W)
  at::Tensor lower, upper;  ///< (B, C, H, W)
};

}  // namespace elliptical::attack
