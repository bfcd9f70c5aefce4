// SPDX-License-Identifier: MIT
#include "elliptical/measure/measuring_command.h"

#include <cmath>
#include <sstream>

#include "elliptical/base/names.h"
#include "elliptical/base/printable.h"
#include "elliptical/measure/labels.h"

namespace elliptical::measure {
namespace {

/// A command that grows by flags; what has no value is not said.
class Command {
 public:
  Command(const std::string& name, const std::string& folder)
      : text_("elliptical " + name + " " + shell_word(folder)) {}

  void add(const std::string& flag, const std::string& value) {
    if (!value.empty()) text_ += " --" + flag + " " + shell_word(value);
  }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

bool is_attack(const Record& record) { return source_of(record) == Source::kAttack; }

void add_attack(const AttackKind& attack, Command& command) {
  const bool is_mean = attack.name == kIndividualMean;
  command.add("attack", is_mean ? kIndividualAttacks : attack.name);
  command.add("eps", eps_text(attack.eps));
  if (attack.profile != "strict") command.add("profile", attack.profile);
  if ((attack.metric_gradient == "through") != (attack.profile == "strict")) {
    command.add("metric-gradient", attack.metric_gradient);
  }
  if (attack.seed != 1) command.add("seed", std::to_string(attack.seed));
  std::istringstream options(attack.options);
  for (std::string option; options >> option;) command.add("set", attack.name + "." + option);
}

/// Everything but the weights and what is recorded beside.
Command command_of(const Record& record,
                   const TaskMeasures& measures,
                   const CommandTarget& target) {
  const bool attacked = is_attack(record);
  Command command(attacked ? "attack" : "eval", target.folder);
  const auto value = [&](const std::string& label) { return label_text(record, label); };
  const auto set = [&](const std::string& option, const std::string& text) {
    if (!text.empty()) command.add(attacked ? "eval-set" : "set", option + "=" + text);
  };
  if (attacked) add_attack(attack_of(record), command);
  command.add("split", value("split"));
  if (const auto* damage = measures.find_perturbation(value("perturbation"))) {
    for (const Parameter& parameter : parameters_of(*damage)) {
      if (attacked) {
        set(parameter.option, value(parameter.label));
      } else {
        command.add(parameter.flag, value(parameter.label));
      }
    }
  }
  const std::string method = value("method");
  const bool is_usual = measures.methods.empty() || method == measures.methods.front();
  if (!is_usual) command.add("method", method);
  for (const EvalOption& option : measures.options) {
    const std::string text = value(option.label);
    if (text != option.usual) set(option.option, text);
  }
  for (const EvalOption& option : measures.trained_options) {
    const std::string text = value(option.label);
    const auto usual = target.trained.find(option.usual);
    if (usual != target.trained.end() && usual->second != text) set(option.option, text);
  }
  return command;
}

/// A record that was measured in these circumstances, but for its number.
Record record_of(const Circumstances& c, const TaskMeasures& measures) {
  Record record;
  auto& labels = record.labels;
  const auto add_text = [&](const std::string& name, const std::string& text) {
    if (!text.empty()) labels[name] = text;
  };
  const auto add_whole = [&](const std::string& name, int64_t number) {
    if (number > 0) labels[name] = number;
  };
  const bool attacked = c.condition == Condition::kAttacked;
  add_text("source", to_string(attacked ? Source::kAttack : Source::kEvaluation));
  add_text("split", c.split);
  add_text("data", c.reading.data);
  add_text("method", c.reading.method);
  add_whole("window", c.reading.window);
  add_whole("columns", c.reading.columns);
  add_whole("stride", c.reading.stride);
  add_whole("max_pictures", c.num_pictures);
  if (attacked) {
    add_text("attack", c.attack.name);
    labels["eps"] = c.attack.eps;
    add_text("profile", c.attack.profile);
    add_text("metric_gradient", c.attack.metric_gradient);
    add_text("attack_options", c.attack.options);
    labels["attack_seed"] = c.attack.seed;
  }
  if (const auto* damage = measures.find_perturbation(c.perturbation)) {
    add_text("perturbation", damage->name);
    if (damage->kind) add_text(damage->kind->label, c.corruption);
    const bool is_whole = damage->strength.kind == Parameter::Kind::kWhole;
    labels[damage->strength.label] =
        is_whole ? LabelValue(static_cast<int64_t>(std::llround(c.strength)))
                 : LabelValue(c.strength);
    for (const auto& [label, text] : damage_details(c, *damage)) add_text(label, text);
  }
  return record;
}

}  // namespace

std::string measuring_command(const Record& record,
                              const TaskMeasures& measures,
                              const CommandTarget& target) {
  Record known = record;
  // Attacks of earlier versions did not say when they were of the first pictures only.
  if (is_attack(record) && !record.labels.contains("pictures_total")) {
    known.labels.emplace("max_pictures", record.count);
  }
  Command command = command_of(known, measures, target);
  command.add("weights", label_text(record, "weights"));
  command.add("step", label_text(record, "step"));
  return command.text();
}

std::string measuring_command(const Circumstances& circumstances,
                              const TaskMeasures& measures,
                              const CommandTarget& target) {
  const Record record = record_of(circumstances, measures);
  Command command = command_of(record, measures, target);
  command.add(is_attack(record) ? "eval-set" : "set", "blocks=50");
  return command.text();
}

}  // namespace elliptical::measure
