// SPDX-License-Identifier: MIT
#include <torch/torch.h>

#include "elliptical/attack/hyperplane_impl.h"

namespace elliptical::attack {
namespace {

constexpr double kUnbounded = 1e10;  // room without a box; a product with 0 stays 0

/// How far a coordinate can go to a bound that is `distance` away; 0 where it is beyond already.
at::Tensor room(const at::Tensor& distance) { return distance.clamp(0, kUnbounded); }

}  // namespace

at::Tensor step_to_hyperplane(const at::Tensor& t,
                              const at::Tensor& w,
                              const at::Tensor& b,
                              const std::optional<at::Tensor>& low,
                              const std::optional<at::Tensor>& high) {
  const at::Tensor distance = (w * t).sum(1) - b;  // (B)
  const at::Tensor direction =                     // of the step, (B, n): -1, 0, 1
      at::where(distance >= 0, -1, 1).to(t.scalar_type()).unsqueeze(1) * w.sign();
  const at::Tensor unbounded = at::full({}, kUnbounded, t.options());
  const at::Tensor p = at::where(direction < 0, low ? room(t - *low) : unbounded,
                                 high ? room(*high - t) : unbounded);
  const at::Tensor slope = w.abs(), target = distance.abs();
  at::Tensor lambda = at::zeros_like(target);  // (B)
  while (true) {
    const at::Tensor is_free = p > lambda.unsqueeze(1);
    const at::Tensor blocked = at::where(is_free, 0, slope * p).sum(1);
    const at::Tensor total_slope = at::where(is_free, slope, 0).sum(1);
    const at::Tensor next = at::where(total_slope > 0, (target - blocked) / total_slope, unbounded);
    const at::Tensor rises = next > lambda;  // what rounding adds at the end does not
    if (!rises.any().item<bool>()) break;
    lambda = at::where(rises, next, lambda);
  }
  return direction * at::minimum(p, lambda.unsqueeze(1));
}

}  // namespace elliptical::attack
