// SPDX-License-Identifier: MIT
#include <c10/util/Exception.h>

#include <algorithm>
#include <array>

#include "elliptical/base/names.h"
#include "elliptical/ops/metric.h"

namespace elliptical::ops {
namespace {

// In the order of the enumerators.
constexpr std::array<std::string_view, 2> kScopes = {"sequence", "prefix"};
constexpr std::array<std::string_view, 3> kScalings = {"max", "mean", "none"};

template <size_t Count>
std::vector<std::string> listed(const std::array<std::string_view, Count>& names) {
  return {names.begin(), names.end()};
}

template <class Enum, size_t Count>
Enum find(const char* option,
          const std::array<std::string_view, Count>& names,
          std::string_view name) {
  const auto found = std::find(names.begin(), names.end(), name);
  TORCH_CHECK_VALUE(found != names.end(), "metric: ", option, ": ",
                    unknown_name(name, listed(names)));
  return static_cast<Enum>(found - names.begin());
}

}  // namespace

std::string_view to_string(MetricScope scope) { return kScopes[static_cast<size_t>(scope)]; }
std::string_view to_string(MetricScaling scaling) {
  return kScalings[static_cast<size_t>(scaling)];
}

MetricScope metric_scope(std::string_view name) {
  return find<MetricScope>("scope", kScopes, name);
}
MetricScaling metric_scaling(std::string_view name) {
  return find<MetricScaling>("scaling", kScalings, name);
}

}  // namespace elliptical::ops
