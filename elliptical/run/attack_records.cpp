// SPDX-License-Identifier: MIT
#include "elliptical/run/attack_records.h"

#include <torch/torch.h>

#include <algorithm>
#include <array>
#include <set>

#include "elliptical/attack/auto_attack.h"
#include "elliptical/base/config.h"
#include "elliptical/measure/attack_flags.h"
#include "elliptical/measure/circumstances.h"
#include "elliptical/measure/labels.h"

namespace elliptical::run {
namespace {

/// The attacks of AutoAttack's individual mode.
constexpr std::array<std::string_view, 4> kIndividual = {"apgd-ce", "apgd-t", "fab-t", "square"};

double percent(int64_t part, int64_t whole) {
  return 100.0 * static_cast<double>(part) / static_cast<double>(whole);
}

/// Options that differ from what the attack has by itself: "steps=7 rho=0.5".
std::string changed_options(const ChosenOptions& chosen) {
  ChosenOptions now = chosen, usual(attack::attack_choices(), chosen.name());
  std::map<std::string, std::string> before;
  for (const FieldText& field : describe(fields_of(usual))) before[field.key] = field.value;
  std::string text;
  for (const FieldText& field : describe(fields_of(now))) {
    const auto found = before.find(field.key);
    if (found != before.end() && found->second == field.value) continue;
    text += (text.empty() ? "" : " ") + field.key + "=" + field.value;
  }
  return text;
}

Labels case_labels(const AttackPlan& plan, const AttackCase& each) {
  Labels labels = {
      {"attack", each.attack.name()},
      {"eps", each.eps},
      {"eps_unit", std::string(plan.profile == AttackProfile::kStrict ? "pixel" : "normalized")},
      {"profile", std::string(to_string(plan.profile))},
      {"metric_gradient", std::string(each.gradient_through_metric ? "through" : "detached")},
      {"attack_seed", plan.seed}};
  ChosenOptions chosen = each.attack;
  for (const FieldText& field : describe(fields_of(chosen))) {
    if (field.key == "steps") labels["steps"] = std::stoll(field.value);
    if (field.key == "queries") labels["queries"] = std::stoll(field.value);
  }
  const std::string changed = changed_options(each.attack);
  if (!changed.empty()) labels["attack_options"] = changed;
  return labels;
}

/// The robust pictures that `square` broke after the other attacks of auto-attack.
int64_t broken_by_square(const AttackScore& score) {
  for (size_t i = 1; i < score.stages.size(); ++i) {
    if (score.stages[i].first == "square") {
      return score.stages[i - 1].second - score.stages[i].second;
    }
  }
  return 0;
}

/// Robust accuracy of equal parts of the pictures, over attacks of equally many pictures.
void add_blocks(const std::vector<const AttackScore*>& scores,
                const Labels& labels,
                const tasks::PictureSet& set,
                std::vector<Record>& records) {
  const int64_t count = scores.front()->count;
  if (set.num_blocks() == 0) return;
  struct Block {
    int64_t num_robust = 0, count = 0;
  };
  std::map<int64_t, Block> blocks;
  for (int64_t i = 0; i < count; ++i) {
    // Of a set that is damaged in several ways they come several times.
    Block& block = blocks[set.block_of(i % set.num_pictures())];
    ++block.count;
    for (const AttackScore* score : scores) {
      block.num_robust += score->outcomes[static_cast<size_t>(i)] == '1' ? 1 : 0;
    }
  }
  for (const auto& [index, block] : blocks) {
    const auto whole = block.count * static_cast<int64_t>(scores.size());
    Record record{"block_robust_accuracy", percent(block.num_robust, whole), block.count, labels};
    record.labels["block"] = index;
    record.labels[measure::kCut] = std::string(measure::kBalancedCut);
    record.labels["pictures"] = count;
    records.push_back(std::move(record));
  }
}

void add_case(const AttackPlan& plan,
              const AttackCase& each,
              const AttackScore& score,
              int64_t num_classes,
              const tasks::PictureSet& set,
              std::vector<Record>& records) {
  Labels labels = case_labels(plan, each);
  const auto add = [&](const char* metric, int64_t correct, const Labels& more = {}) {
    Record record{.metric = metric, .value = percent(correct, score.count), .count = score.count};
    record.labels = more;
    record.labels.insert(labels.begin(), labels.end());
    records.push_back(std::move(record));
  };
  const std::string name = each.attack.name();
  if (name == "auto-attack") {
    labels[measure::kFlagRandomised] = score.is_randomised;
    labels[measure::kFlagProbabilities] = score.looks_like_probabilities;
    labels[measure::kFlagFewClasses] = score.has_few_classes;
    labels[measure::kFlagSquareBeatsGradients] =
        attack::square_beats_gradients(broken_by_square(score), score.count);
    std::string skipped;
    for (const auto& [stage, robust] : score.stages) {
      if (!attack::is_possible(stage, num_classes)) skipped += (skipped.empty() ? "" : " ") + stage;
    }
    if (!skipped.empty()) labels[measure::kSkippedStages] = skipped;
  }
  if (name == "apgd-dlr" || name == "apgd-t" || name == "auto-attack") {
    labels[measure::kFlagZeroGradients] = score.num_zero_gradients > 0;
  }
  add("clean_accuracy", score.clean_top1);
  add("clean_accuracy_top5", score.clean_top5);
  add("robust_accuracy", score.robust_top1);
  add("robust_accuracy_top5", score.robust_top5);
  for (const auto& [stage, robust] : score.stages) {
    add("robust_accuracy_after", robust,
        {{"stage", stage}, {"skipped", !attack::is_possible(stage, num_classes)}});
  }
  records.push_back({"attack_seconds", score.seconds, score.count, labels});
  add_blocks({&score}, labels, set, records);
}

}  // namespace

std::vector<Record> attack_records(const AttackPlan& plan,
                                   const std::vector<AttackScore>& scores,
                                   int64_t num_classes,
                                   const Labels& labels,
                                   const tasks::PictureSet& set) {
  std::vector<Record> records;
  // Robust accuracies of the four attacks of individual mode, by eps and gradient.
  std::map<std::pair<double, bool>, std::vector<const AttackScore*>> individual;
  for (size_t i = 0; i < scores.size(); ++i) {
    const AttackCase& each = plan.cases[i];
    if (scores[i].count == 0) continue;
    add_case(plan, each, scores[i], num_classes, set, records);
    if (std::find(kIndividual.begin(), kIndividual.end(), each.attack.name()) !=
        kIndividual.end()) {
      individual[{each.eps, each.gradient_through_metric}].push_back(&scores[i]);
    }
  }
  for (const auto& [key, of_attacks] : individual) {
    if (of_attacks.size() != kIndividual.size()) continue;
    int64_t top1 = 0, top5 = 0;
    for (const AttackScore* score : of_attacks) {
      top1 += score->robust_top1;
      top5 += score->robust_top5;
    }
    const int64_t count = of_attacks.front()->count;
    const auto whole = count * static_cast<int64_t>(kIndividual.size());
    Labels mean = case_labels(
        plan, {ChosenOptions(attack::attack_choices(), "auto-attack"), key.first, key.second});
    mean["attack"] = std::string(measure::kIndividualMean);
    records.push_back({"robust_accuracy", percent(top1, whole), count, mean});
    records.push_back({"robust_accuracy_top5", percent(top5, whole), count, mean});
    add_blocks(of_attacks, mean, set, records);
  }
  for (Record& record : records) record.labels.insert(labels.begin(), labels.end());
  return records;
}

void append_new_records(const std::filesystem::path& path, const std::vector<Record>& records) {
  std::set<std::string> present;
  for (const Record& record : read_records(path, [](const std::string&) {})) {
    present.insert(to_json_line(record));
  }
  RecordWriter writer(path);
  for (const Record& record : records) {
    if (present.insert(to_json_line(record)).second) writer.append(record);
  }
}

}  // namespace elliptical::run
