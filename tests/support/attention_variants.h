// SPDX-License-Identifier: MIT
//
// Attention variants with options that between them use every branch; suites of nn, models and
// tasks run all of them.
#pragma once

#include <ostream>
#include <set>
#include <string>
#include <vector>

#include "elliptical/base/options.h"
#include "elliptical/nn/attention/attention.h"

namespace elliptical::support {

struct AttentionVariant {
  std::string name;       ///< of the test case
  std::string attention;  ///< entry of the table
  std::vector<std::string> assignments;
  // What the options take away of what the table says.
  bool looks_ahead = false;   ///< a causal model sees the future through them
  bool keeps_streams = true;  ///< the variant still streams with them
  // How closely it can be tested.
  bool leaks_rarely = false;  ///< only where the future changes a choice
  bool damped = false;        ///< rows of the attention map sum to less than 1
  /// What makes gradients those of the function, where by default some of it counts as constant.
  std::vector<std::string> exact_gradient = {};
  bool sums_to_one = true;  ///< a query's weights of values do
  /// Parameters beside those of qkv, proj and mixer.
  std::set<std::string> own_parameters = {};
  /// Where `attention` stands: the table, or one of a test.
  const std::vector<nn::AttentionEntry>& (*table)() = nn::attention_table;
  const std::vector<OptionsEntry>& (*choices)() = nn::attention_choices;

  const nn::AttentionEntry& entry() const;
  /// With these options.
  nn::AttentionAbilities can() const;
  ChosenOptions options(const std::vector<std::string>& more = {}) const;
};

inline std::ostream& operator<<(std::ostream& stream, const AttentionVariant& variant) {
  return stream << variant.name;
}

std::vector<AttentionVariant> attention_variants();
/// Those of them that may stand in a causal model.
std::vector<AttentionVariant> causal_attention_variants();

/// Name of a parameterized case.
struct VariantName {
  template <class Info>
  std::string operator()(const Info& info) const {
    return info.param.name;
  }
};

}  // namespace elliptical::support
