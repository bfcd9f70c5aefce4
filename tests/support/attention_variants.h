// SPDX-License-Identifier: MIT
//
// Attention variants with options that between them use every branch; suites of nn, models and
// tasks run all of them.
#pragma once

#include <ostream>
#include <string>
#include <vector>

#include "elliptical/base/options.h"

namespace elliptical::support {

struct AttentionVariant {
  std::string name;       ///< of the test case
  std::string attention;  ///< entry of the table
  std::vector<std::string> assignments;
  bool streams = true;        ///< in a causal model
  bool leaks = false;         ///< a causal model sees the future through it
  bool leaks_rarely = false;  ///< only where the future changes a choice
  bool damped = false;        ///< rows of the attention map sum to less than 1
  bool drops = true;          ///< has probabilities that dropout can drop
  /// What makes gradients those of the function, where by default some of it counts as constant.
  std::vector<std::string> exact_gradient = {};
  bool sums_to_one = true;  ///< a query's weights of values do

  ChosenOptions options(const std::vector<std::string>& more = {}) const;
};

inline std::ostream& operator<<(std::ostream& stream, const AttentionVariant& variant) {
  return stream << variant.name;
}

std::vector<AttentionVariant> attention_variants();

/// Name of a parameterized case.
struct VariantName {
  template <class Info>
  std::string operator()(const Info& info) const {
    return info.param.name;
  }
};

}  // namespace elliptical::support
