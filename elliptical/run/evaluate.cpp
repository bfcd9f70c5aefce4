// SPDX-License-Identifier: MIT
#include "elliptical/run/evaluate.h"

#include <torch/torch.h>

#include <chrono>

#include "elliptical/nn/attention/metric_statistics.h"
#include "elliptical/run/model_guards.h"
#include "elliptical/run/signals.h"

namespace elliptical::run {
namespace {

/// What has been done before the time that is left is guessed: the first batch is a slow one.
constexpr int64_t kWarmBatches = 4;
constexpr std::chrono::seconds kWarmTime{5};

}  // namespace

Labels run_labels(const RunPaths& paths,
                  const RunOptions& options,
                  tasks::Task& task,
                  int64_t step,
                  measure::Source source) {
  LabelValue name = options.name;
  if (options.name.empty()) {
    const Labels model = task.labels();
    const auto attention = model.find("attention");
    name = attention != model.end() ? attention->second : LabelValue(paths.name());
  }
  Labels labels{{"name", name},
                {"run", paths.name()},
                {"seed", options.seed},
                {"source", std::string(to_string(source))},
                {"step", step}};
  if (options.smoke.value_or(false)) labels["smoke"] = true;
  if (options.train.eval_weights != Weights::kTrained) {
    labels["eval_weights"] = std::string(to_string(options.train.eval_weights));
  }
  return labels;
}

std::optional<std::vector<Record>> evaluate(tasks::Task& task,
                                            Options& eval_options,
                                            const Labels& labels,
                                            const LoopHooks& hooks,
                                            tasks::Dump* dump) {
  const at::NoGradGuard no_grad;
  const EvaluationMode mode(task.model());
  const std::unique_ptr<tasks::EvalSet> set = task.eval_set(eval_options);
  hooks.describe(set->description());
  tasks::Scores scores;
  const auto start = std::chrono::steady_clock::now();
  int64_t num_units = 0;
  bool has_told = false;  // how long it takes
  const std::string cost = set->cost();
  if (!cost.empty()) hooks.say("eval: " + cost);
  for (int64_t i = 0; i < set->size(); ++i) {
    if (stop_signal() != 0) return std::nullopt;
    const tasks::Batch batch = set->get(i);
    nn::MetricStatistics statistics;
    auto pass = nn::Pass::of_evaluation(&statistics);
    tasks::score_batch(task, *set, batch, pass, scores, dump);
    num_units += batch.num_units;
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
    const double left =
        seconds.count() / static_cast<double>(i + 1) * static_cast<double>(set->size() - i - 1);
    if (!cost.empty() && !has_told && (i >= kWarmBatches || seconds > kWarmTime)) {
      hooks.say("eval: about " + duration_text(left) + " at the speed of the first batches");
      has_told = true;
    }
    hooks.show({.phase = "eval",
                .done = i + 1,
                .total = set->size(),
                .units_per_second = static_cast<double>(num_units) / seconds.count(),
                .unit = task.unit(),
                .seconds_left = left});
  }
  std::vector<Record> records = task.metrics(scores);
  for (Record& record : records) {
    // insert keeps what is there: the metric's own labels come first.
    record.labels.insert(labels.begin(), labels.end());
    for (const auto& [name, value] : set->labels()) record.labels.emplace(name, value);
    for (const auto& [name, value] : task.labels()) record.labels.emplace(name, value);
  }
  return records;
}

}  // namespace elliptical::run
