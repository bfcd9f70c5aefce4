// SPDX-License-Identifier: MIT
#include "elliptical/measure/circumstances.h"

#include <algorithm>
#include <cmath>

#include "elliptical/base/names.h"
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

std::vector<std::pair<std::string, std::string>> damage_details(const Circumstances& circumstances,
                                                                const Perturbation& perturbation) {
  std::vector<std::pair<std::string, std::string>> details;
  const std::vector<std::string> values = split(circumstances.damage, '|');
  for (size_t i = 0; i < std::min(values.size(), perturbation.details.size()); ++i) {
    if (!values[i].empty()) details.emplace_back(perturbation.details[i], values[i]);
  }
  return details;
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
  const double steps = std::round(255 * eps);
  const bool is_fraction = steps > 0 && steps / 255 == eps;
  if (is_fraction) return std::to_string(std::llround(steps)) + "/255";
  return eps == 0 ? "0" : label_text(LabelValue(eps));
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

std::string remark_text(const AttackKind& attack, const std::string& remark) {
  return attack.name + ", " + join(attack_details(attack)) + ": " + remark;
}

std::string doubt_text(const std::string& folder,
                       const AttackKind& attack,
                       const std::string& doubt) {
  return folder + ": accuracy under " + attack.name + ", " + join(attack_details(attack)) +
         " may be too high, " + doubt;
}

}  // namespace elliptical::measure
