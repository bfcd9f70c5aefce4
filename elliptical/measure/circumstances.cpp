// SPDX-License-Identifier: MIT
#include "elliptical/measure/circumstances.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <sstream>

#include "elliptical/base/names.h"
#include "elliptical/base/printable.h"
#include "elliptical/measure/labels.h"

namespace elliptical::measure {
namespace {

int64_t whole_or_zero(const Record& record, const char* name) {
  return whole_label(record, name).value_or(0);
}

/// What is unusual about the damage; what is absent is as usual.
std::string unusual_details(const Record& record,
                            const Perturbation& perturbation,
                            const TaskMeasures& measures) {
  std::string text;
  for (const std::string detail : perturbation.details) {
    const std::string value = label_text(record, detail);
    const bool is_usual = std::any_of(
        measures.options.begin(), measures.options.end(),
        [&](const EvalOption& option) { return detail == option.label && value == option.usual; });
    text += (is_usual ? "" : value) + "|";
  }
  return text;
}

}  // namespace

Reading reading_of(const Record& record) {
  return {.data = label_text(record, "data"),
          .method = label_text(record, "method"),
          .window = whole_or_zero(record, "window"),
          .columns = whole_or_zero(record, "columns"),
          .stride = whole_or_zero(record, "stride")};
}

AttackKind attack_of(const Record& record) {
  return {.name = label_text(record, "attack"),
          .eps = number_label(record, "eps").value_or(0),
          .profile = label_text(record, "profile"),
          .metric_gradient = label_text(record, "metric_gradient"),
          .options = label_text(record, "attack_options"),
          .seed = whole_label(record, "attack_seed").value_or(1)};
}

std::optional<Circumstances> circumstances_of(const Record& record, const TaskMeasures& measures) {
  Circumstances result{.split = label_text(record, "split"),
                       .reading = reading_of(record),
                       .num_pictures = whole_or_zero(record, "max_pictures"),
                       .subset = label_text(record, "subset")};
  const bool is_attack = source_of(record) == Source::kAttack;
  const std::string name = label_text(record, "perturbation");
  if (name == "none") {
    if (!is_attack) return result;
    result.condition = Condition::kAttacked;
    result.num_pictures = is_block(record) ? whole_or_zero(record, "pictures") : record.count;
    result.attack = attack_of(record);
    return result;
  }
  const Perturbation* perturbation = measures.find_perturbation(name);
  if (is_attack || perturbation == nullptr) return std::nullopt;
  result.condition = Condition::kDamaged;
  result.perturbation = name;
  result.strength = number_label(record, perturbation->strength.label).value_or(0);
  if (perturbation->kind) result.corruption = label_text(record, perturbation->kind->label);
  result.damage = unusual_details(record, *perturbation, measures);
  return result;
}

bool is_usual_damage(const Circumstances& circumstances) {
  return circumstances.damage.find_first_not_of('|') == std::string::npos;
}

std::string reading_text(const Reading& reading) {
  const std::string tokens = std::to_string(reading.window) + " tokens";
  if (reading.method == "sliding") {
    return "by a sliding window of " + tokens + ", stride " + std::to_string(reading.stride);
  }
  if (reading.method != "block" && reading.method != "stream") return "";
  const std::string text =
      "by blocks of " + tokens + " in " + std::to_string(reading.columns) + " columns";
  return reading.method == "stream" ? text + ", token by token" : text;
}

std::string eps_text(double eps) {
  char text[32];
  const double steps = std::round(255 * eps);
  if (steps > 0 && std::abs(255 * eps - steps) <= 1e-9 * steps) {
    std::snprintf(text, sizeof text, "%.0f/255", steps);
  } else {
    std::snprintf(text, sizeof text, "%.4g", eps);
  }
  return text;
}

std::vector<std::string> attack_details(const AttackKind& attack) {
  std::vector<std::string> details = {"eps " + eps_text(attack.eps)};
  if (!attack.options.empty()) details.push_back(attack.options);
  if (attack.profile != "strict") details.push_back(attack.profile);
  if ((attack.metric_gradient == "through") != (attack.profile == "strict")) {
    details.push_back("metric " + attack.metric_gradient);
  }
  if (attack.seed != 1) details.push_back("seed " + std::to_string(attack.seed));
  return details;
}

std::string doubt_text(const std::string& folder,
                       const AttackKind& attack,
                       const std::string& doubt) {
  return folder + ": accuracy under " + attack.name + ", " + join(attack_details(attack)) +
         " may be too high, " + doubt;
}

std::string measuring_command(const Circumstances& circumstances,
                              const TaskMeasures& measures,
                              const std::string& folder) {
  char number[32];
  const bool is_attack = circumstances.condition == Condition::kAttacked;
  std::string command =
      (is_attack ? "elliptical attack " : "elliptical eval ") + shell_word(folder);
  const auto add = [&](const std::string& flag, const std::string& value) {
    command += " --" + flag + " " + shell_word(value);
  };
  const std::string set = is_attack ? "eval-set" : "set";
  const AttackKind& attack = circumstances.attack;
  const bool is_mean = attack.name == "individual-mean";
  if (is_attack) {
    add("attack", is_mean ? "apgd-ce,apgd-t,fab-t,square" : attack.name);
    const bool is_fraction = attack.eps > 0 && std::round(255 * attack.eps) / 255 == attack.eps;
    add("eps",
        is_fraction
            ? eps_text(attack.eps)
            : std::string(number, std::to_chars(number, number + sizeof number, attack.eps).ptr));
    if (attack.profile != "strict") add("profile", attack.profile);
    if ((attack.metric_gradient == "through") != (attack.profile == "strict")) {
      add("metric-gradient", attack.metric_gradient);
    }
    if (attack.seed != 1) add("seed", std::to_string(attack.seed));
    std::istringstream options(attack.options);
    for (std::string option; options >> option;) add("set", attack.name + "." + option);
  }
  add("split", circumstances.split);
  const Reading& reading = circumstances.reading;
  if (!reading.method.empty() && reading.method != "block") add("method", reading.method);
  if (reading.stride > 1) add(set, "stride=" + std::to_string(reading.stride));
  if (const auto* damage = measures.find_perturbation(circumstances.perturbation)) {
    std::snprintf(number, sizeof number, "%.6g", circumstances.strength);
    if (damage->kind) add(damage->kind->flag, circumstances.corruption);
    add(damage->strength.flag, number);
  }
  if (circumstances.num_pictures > 0) {
    add(set, "max_pictures=" + std::to_string(circumstances.num_pictures));
  }
  add(set, "blocks=50");
  return command;
}

}  // namespace elliptical::measure
