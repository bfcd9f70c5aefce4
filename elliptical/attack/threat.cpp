// SPDX-License-Identifier: MIT
#include "elliptical/attack/threat.h"

#include <torch/torch.h>

#include <cmath>
#include <limits>

#include "elliptical/base/errors.h"

namespace elliptical::attack {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// The outermost numbers of x's type that are not further than eps from x; `side` is -1 or 1.
at::Tensor edge_of_ball(const at::Tensor& x, double eps, double side) {
  const at::Tensor exact = x.to(at::kDouble);
  const at::Tensor edge = (exact + side * eps).to(x.scalar_type());
  const at::Tensor too_far = (edge.to(at::kDouble) - exact).abs() > eps;
  const at::Tensor inward = at::full_like(edge, -side * kInfinity);
  return at::where(too_far, at::nextafter(edge, inward), edge);
}

at::Tensor all_of_picture(const at::Tensor& condition) { return condition.flatten(1).all(1); }

}  // namespace

FeasibleSet::FeasibleSet(const at::Tensor& pictures, const Threat& what)
    : threat(what), x(pictures) {
  if (!(threat.eps >= 0) || std::isinf(threat.eps)) {
    throw ConfigError("attack: eps must be finite and not negative, got " +
                      std::to_string(threat.eps));
  }
  for (std::optional<at::Tensor>* bound : {&threat.low, &threat.high}) {
    if (*bound) *bound = (*bound)->to(x.scalar_type());
  }
  TORCH_CHECK(!threat.low || !threat.high || (*threat.low <= *threat.high).all().item<bool>(),
              "attack: the box must have low <= high, got ", threat.low->max(), " and ",
              threat.high->min());
  lower = into_box(edge_of_ball(x, threat.eps, -1));
  upper = into_box(edge_of_ball(x, threat.eps, 1));
}

at::Tensor FeasibleSet::project(const at::Tensor& v) const { return at::clamp(v, lower, upper); }

at::Tensor FeasibleSet::into_box(const at::Tensor& v) const {
  return threat.low || threat.high ? at::clamp(v, threat.low, threat.high) : v;
}

at::Tensor FeasibleSet::corner(const at::Tensor& direction) const {
  return at::where(direction > 0, upper, at::where(direction < 0, lower, project(x)));
}

at::Tensor FeasibleSet::in_ball(const at::Tensor& x_adv) const {
  return all_of_picture((x_adv.to(at::kDouble) - x.to(at::kDouble)).abs() <= threat.eps);
}

at::Tensor FeasibleSet::holds(const at::Tensor& x_adv) const {
  return all_of_picture((x_adv >= lower).logical_and_(x_adv <= upper)) | all_of_picture(x_adv == x);
}

FeasibleSet FeasibleSet::select(const at::Tensor& indices) const {
  FeasibleSet part = *this;
  for (at::Tensor* tensor : {&part.x, &part.lower, &part.upper}) {
    *tensor = tensor->index_select(0, indices);
  }
  return part;
}

}  // namespace elliptical::attack
