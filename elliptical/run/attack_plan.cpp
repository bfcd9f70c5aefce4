// SPDX-License-Identifier: MIT
#include "elliptical/run/attack_plan.h"

#include <torch/torch.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "elliptical/base/config.h"
#include "elliptical/base/errors.h"
#include "elliptical/base/name_table.h"

namespace elliptical::run {
namespace {

/// The parts between commas; UsageError where one is empty or comes twice.
std::vector<std::string> split_list(const std::string& text, const std::string& subject) {
  std::vector<std::string> parts;
  for (const std::string& part : split(text)) {
    if (part.empty()) {
      throw UsageError(subject + ": must be a list like a,b, got \"" + text + "\"");
    }
    if (std::find(parts.begin(), parts.end(), part) != parts.end()) {
      throw UsageError(subject + ": must name each once, got \"" + part + "\" twice");
    }
    parts.push_back(part);
  }
  return parts;
}

ChosenOptions find_attack(const std::string& name, AttackProfile profile) {
  const attack::AttackEntry& entry = require_entry<UsageError>(
      attack::attack_table(), name, "--attack", " (run: elliptical list attacks)");
  ChosenOptions chosen(attack::attack_choices(), name);
  if (profile == AttackProfile::kPublished && entry.use_published_options != nullptr) {
    entry.use_published_options(chosen.options());
  }
  return chosen;
}

/// The options of several attacks, each below its name.
struct AttackOptionsByName {
  std::vector<ChosenOptions>* attacks;
  void visit(FieldList& fields) {
    for (ChosenOptions& chosen : *attacks) fields.add_group(chosen.name(), chosen.options());
  }
};

/// The whole of `text` as a number; nothing when it is none.
std::optional<double> parse_number(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

}  // namespace

std::string_view to_string(AttackProfile profile) {
  return profile == AttackProfile::kStrict ? "strict" : "published";
}

bool changes_every_picture(std::string_view attack) {
  const attack::AttackEntry* entry = find_entry(attack::attack_table(), attack);
  return entry != nullptr && entry->changes_every_picture;
}

double parse_eps(std::string_view text) {
  const size_t slash = text.find('/');
  std::optional<double> value = parse_number(text.substr(0, slash));
  if (value && slash != std::string_view::npos) {
    const std::optional<double> divisor = parse_number(text.substr(slash + 1));
    value = divisor ? std::optional(*value / *divisor) : std::nullopt;
  }
  if (!value || !(*value >= 0) || std::isinf(*value)) {
    throw UsageError("--eps: must be a number or a fraction like 1/255, not negative, got \"" +
                     std::string(text) + "\"");
  }
  return *value;
}

AttackPlan make_attack_plan(const AttackWords& words) {
  AttackPlan plan;
  plan.profile = words.profile == "published" ? AttackProfile::kPublished : AttackProfile::kStrict;
  const bool is_strict = plan.profile == AttackProfile::kStrict;

  std::vector<double> budgets;
  for (const std::string& text : split_list(words.eps, "--eps")) {
    budgets.push_back(parse_eps(text));
    if (is_strict && budgets.back() > 1) {
      throw UsageError("--eps: must be at most 1, the range of a pixel, got \"" + text +
                       "\" (did you mean " + text + "/255?)");
    }
  }
  std::vector<ChosenOptions> attacks;
  for (const std::string& name : split_list(words.attacks, "--attack")) {
    attacks.push_back(find_attack(name, plan.profile));
  }
  AttackOptionsByName by_name{&attacks};
  apply_overrides(words.assignments, fields_of(by_name));

  std::string gradient = words.metric_gradient;
  if (gradient.empty()) gradient = is_strict ? "through" : "detached";
  for (const ChosenOptions& chosen : attacks) {
    for (const double eps : budgets) {
      if (gradient != "detached") plan.cases.push_back({chosen, eps, true});
      if (gradient != "through") plan.cases.push_back({chosen, eps, false});
    }
  }
  return plan;
}

}  // namespace elliptical::run
