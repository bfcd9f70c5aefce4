// SPDX-License-Identifier: MIT
//
// What `attack` is to do: which attacks, how far pictures may be changed, and in which of two ways
// it is measured.
//
//   strict     pixels are changed, in [0, 1]; labels are the true ones; gradients pass through the
//              metric, which is a function of the picture too
//   published  as released with the paper: normalized pixels are changed, so that eps is in units
//              of a channel's standard deviation; fgsm, pgd and spsa have no box and lead away from
//              what the model says, the others keep the true labels and a box [0, 1] that is meant
//              for pixels; spsa estimates its gradient at 2 x; the metric is the median over tokens
//              and detached
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "elliptical/attack/attack.h"
#include "elliptical/base/options.h"

namespace elliptical::run {

enum class AttackProfile { kStrict, kPublished };
std::string_view to_string(AttackProfile profile);

/// One measurement: an attack, a budget, and whether it sees through the metric.
struct AttackCase {
  ChosenOptions attack;
  double eps = 0;
  bool gradient_through_metric = true;
};

struct AttackPlan {
  AttackProfile profile = AttackProfile::kStrict;
  std::vector<AttackCase> cases;
  int64_t seed = 1;
};

/// As words of a command line.
struct AttackWords {
  std::string attacks;                   ///< "pgd,apgd-ce"
  std::string eps;                       ///< "1/255,0.01"
  std::string profile = "strict";        ///< strict, published
  std::string metric_gradient;           ///< through, detached, both; empty: as the profile has it
  std::vector<std::string> assignments;  ///< "pgd.steps=7"
};

/// The cases, attack by attack, each with all eps. Throws UsageError, and ConfigError for an option
/// that no attack of the plan has.
AttackPlan make_attack_plan(const AttackWords& words);

/// "1/255" or "0.01": finite, not negative; UsageError.
double parse_eps(std::string_view text);

}  // namespace elliptical::run
