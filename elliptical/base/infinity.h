// SPDX-License-Identifier: MIT
#pragma once

#include <limits>

namespace elliptical {

/// What a hidden logit is: its exponential is 0.
inline constexpr double kInfinity = std::numeric_limits<double>::infinity();

}  // namespace elliptical
