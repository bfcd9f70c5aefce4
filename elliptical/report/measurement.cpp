// SPDX-License-Identifier: MIT
#include "elliptical/report/measurement.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <sstream>

#include "elliptical/base/attack_flags.h"
#include "elliptical/base/names.h"
#include "elliptical/report/escape.h"

namespace elliptical::report {
namespace {

constexpr std::array kDamage = {"perturbation", "profile",         "swap_seed",
                                "swap_unit",    "corruption_seed", "corruption_jpeg"};

/// 0 where it is absent.
double number_label(const Record& record, const std::string& name) {
  const auto found = record.labels.find(name);
  if (found == record.labels.end()) return 0;
  if (const auto* number = std::get_if<double>(&found->second)) return *number;
  if (const auto* whole = std::get_if<int64_t>(&found->second)) return static_cast<double>(*whole);
  return 0;
}

int64_t step_of(const Record& record) {
  const auto found = record.labels.find("step");
  const auto* step = found == record.labels.end() ? nullptr : std::get_if<int64_t>(&found->second);
  return step == nullptr ? -1 : *step;
}

bool is_block(const Record& record) { return record.labels.contains("block"); }

/// Whether a part of the data stands for all of them: neighbours among pictures may be of one
/// class.
bool is_fair_block(const Record& record, const Measure& measure) {
  return measure.quantity == &kPerplexity || label_text(record, "cut") == "balanced";
}

/// Nothing where something else was done to the data.
std::optional<Condition> condition_of(const Record& record) {
  const std::string perturbation = label_text(record, "perturbation");
  const bool is_attack = label_text(record, "source") == "attack";
  if (perturbation == "none") return is_attack ? Condition::kAttacked : Condition::kClean;
  if (is_attack) return std::nullopt;
  if (perturbation == "word_swap" || perturbation == "corruption") return Condition::kDamaged;
  return std::nullopt;
}

/// The place in kMeasures that a record belongs to; kMeasures.size(): none.
size_t measure_of(const Record& record, Condition condition) {
  const std::string targets = is_block(record) ? label_text(record, "targets") : "";
  const auto* found = std::find_if(kMeasures.begin(), kMeasures.end(), [&](const Measure& measure) {
    if (measure.condition != condition) return false;
    return is_block(record) ? record.metric == measure.block_metric && targets == measure.targets
                            : record.metric == measure.metric;
  });
  return static_cast<size_t>(found - kMeasures.begin());
}

/// Blocks come in order; when it starts again, the data were measured once more.
void add_block(Measurement& measurement, const Block& block) {
  std::vector<Block>& blocks = measurement.blocks;
  if (!blocks.empty() && block.index <= blocks.back().index) blocks.clear();
  blocks.push_back(block);
}

/// Blocks are all of the data or nothing: an evaluation may have been killed while it wrote them.
void drop_incomplete_blocks(Measurement& measurement) {
  int64_t count = 0;
  for (const Block& block : measurement.blocks) count += block.count;
  if (count != measurement.count) measurement.blocks.clear();
}

}  // namespace

std::string label_text(const Record& record, const std::string& name) {
  const auto found = record.labels.find(name);
  if (found == record.labels.end()) return "";
  if (const auto* text = std::get_if<std::string>(&found->second)) return *text;
  if (const auto* whole = std::get_if<int64_t>(&found->second)) return std::to_string(*whole);
  if (const auto* flag = std::get_if<bool>(&found->second)) return *flag ? "true" : "false";
  char text[32];
  std::snprintf(text, sizeof text, "%.17g", std::get<double>(found->second));
  return text;
}

Circumstances circumstances_of(const Record& record) {
  Circumstances result{
      .split = label_text(record, "split"),
      .condition = condition_of(record).value_or(Condition::kDamaged),
      .strength = number_label(record, "swap_rate") + number_label(record, "severity"),
      .num_pictures = static_cast<int64_t>(number_label(record, "max_pictures")),
      .subset = label_text(record, "subset"),
      .corruption = label_text(record, "corruption")};
  const auto whole = [&](const char* name) {
    return static_cast<int64_t>(number_label(record, name));
  };
  result.reading = {.data = label_text(record, "data"),
                    .method = label_text(record, "method"),
                    .window = whole("window"),
                    .columns = whole("columns"),
                    .stride = whole("stride")};
  if (result.condition != Condition::kAttacked) {
    for (const char* name : kDamage) result.damage += label_text(record, name) + "|";
    return result;
  }
  result.num_pictures =
      is_block(record) ? static_cast<int64_t>(number_label(record, "pictures")) : record.count;
  result.attack = {.name = label_text(record, "attack"),
                   .eps = number_label(record, "eps"),
                   .profile = label_text(record, "profile"),
                   .metric_gradient = label_text(record, "metric_gradient"),
                   .options = label_text(record, "attack_options"),
                   .seed = record.labels.contains("attack_seed")
                               ? static_cast<int64_t>(number_label(record, "attack_seed"))
                               : 1};
  return result;
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

std::string measuring_command(const Circumstances& circumstances, const std::string& folder) {
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
  if (circumstances.condition == Condition::kDamaged) {
    std::snprintf(number, sizeof number, "%.6g", circumstances.strength);
    if (!circumstances.corruption.empty()) add("corrupt", circumstances.corruption);
    add(circumstances.corruption.empty() ? "swap" : "severity", number);
  }
  if (circumstances.num_pictures > 0) {
    add(set, "max_pictures=" + std::to_string(circumstances.num_pictures));
  }
  add(set, "blocks=50");
  return command;
}

bool is_clean_measure(const Record& record) {
  return condition_of(record) == Condition::kClean && !is_block(record) &&
         measure_of(record, Condition::kClean) != kMeasures.size();
}

int64_t last_measured_step(const RunData& run) {
  int64_t last = -1;
  for (const Record& record : run.records) last = std::max(last, step_of(record));
  return last;
}

Measurements measurements_at(const RunData& run, int64_t step) {
  // Records that training wrote say what the scope was in training.
  const auto of_training =
      std::find_if(run.records.begin(), run.records.end(),
                   [](const Record& record) { return label_text(record, "source") != "eval"; });
  Measurements result;
  for (size_t i = 0; i < run.records.size(); ++i) {
    const Record& record = run.records[i];
    const std::optional<Condition> condition = condition_of(record);
    const bool is_average = record.labels.contains("weights");  // of the weights of many steps
    if (step_of(record) != step || !condition || is_average) continue;
    const size_t measure = measure_of(record, *condition);
    if (measure == kMeasures.size()) continue;
    if (is_block(record) && !is_fair_block(record, kMeasures[measure])) continue;
    if (of_training != run.records.end() &&
        label_text(record, "metric_scope") != label_text(*of_training, "metric_scope")) {
      continue;
    }
    Measurement& measurement = result[circumstances_of(record)]
                                   .try_emplace(measure, Measurement{.place = i})
                                   .first->second;
    if (is_block(record)) {
      add_block(measurement,
                {static_cast<int64_t>(number_label(record, "block")), record.value, record.count});
    } else {
      measurement.value = record.value;
      measurement.count = record.count;
      measurement.doubts = attack_doubts(record);
      measurement.num_classes = static_cast<int64_t>(number_label(record, "classes"));
    }
  }
  for (auto& [circumstances, by_measure] : result) {
    std::erase_if(by_measure, [](const auto& entry) { return entry.second.count == 0; });
    for (auto& [measure, measurement] : by_measure) drop_incomplete_blocks(measurement);
  }
  return result;
}

}  // namespace elliptical::report
