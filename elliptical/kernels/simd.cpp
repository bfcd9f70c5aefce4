// SPDX-License-Identifier: MIT
#include "elliptical/kernels/simd_impl.h"  // before Highway

#include "elliptical/kernels/simd.h"

#include <cctype>
#include <cstdlib>
#include <stdexcept>

#include "hwy/highway.h"

namespace elliptical::kernels {
namespace {

std::string target_name(int64_t target) {
  std::string name = hwy::TargetName(target);
  for (char& c : name) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return name;
}

/// The targets in a Highway bit field, best first: better targets have lower bits.
std::vector<int64_t> split(int64_t targets) {
  std::vector<int64_t> result;
  for (; targets != 0; targets &= targets - 1) result.push_back(targets & -targets);
  return result;
}

std::vector<std::string> names(int64_t targets) {
  std::vector<std::string> result;
  for (const int64_t target : split(targets)) result.push_back(target_name(target));
  return result;
}

int64_t runnable() { return hwy::SupportedTargets() & HWY_TARGETS; }

struct Choice {
  int64_t target = 0;
  hwy::ChosenTarget chosen;

  Choice() {
    const char* name = std::getenv("ELLIPTICAL_SIMD");
    use(name ? name : "");
  }

  void use(std::string_view name) {
    std::string possible;
    for (const int64_t candidate : split(runnable())) {
      if (name.empty() || name == target_name(candidate)) {
        target = candidate;
        chosen.Update(candidate);
        return;
      }
      possible += (possible.empty() ? "" : ", ") + target_name(candidate);
    }
    throw std::invalid_argument("simd: target must be one of " + possible + " on this CPU, got \"" +
                                std::string(name) + "\"");
  }
};

Choice& choice() {
  static Choice instance;
  return instance;
}

}  // namespace

std::vector<std::string> simd_targets() { return names(runnable()); }
std::vector<std::string> simd_compiled_targets() { return names(HWY_TARGETS); }
std::string simd_target() { return target_name(choice().target); }
void simd_use(std::string_view name) { choice().use(name); }
const hwy::ChosenTarget& simd_chosen() { return choice().chosen; }

}  // namespace elliptical::kernels
