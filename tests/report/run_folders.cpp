// SPDX-License-Identifier: MIT
#include "tests/report/run_folders.h"

#include <cmath>
#include <stdexcept>

#include "elliptical/tasks/classify_image_measures.h"
#include "elliptical/tasks/language_model_measures.h"

namespace elliptical::test {

const measure::MeasureTable& tasks_of_program() {
  static const measure::MeasureTable table = {&tasks::kLanguageModelMeasures,
                                              &tasks::kClassifyImageMeasures};
  return table;
}

std::string config_text(const MadeRun& made) {
  const bool is_softmax = made.name == "softmax";
  return "name = \"" + made.name + "\"\nseed = " + std::to_string(made.seed) +
         "\n[task]\nname = \"" + made.task + "\"\n[task.data]\nname = \"" + made.data +
         "\"\n[task.model.attention]\nname = \"" + (is_softmax ? "softmax" : "elliptical") +
         "\"\n[train]\nsteps = " + std::to_string(made.steps) + "\n" + made.more_config;
}

std::vector<Record> records_of(const MadeRun& made) {
  std::map<std::string, LabelValue> labels = {{"source", std::string("eval")},
                                              {"data", made.data},
                                              {"split", made.split},
                                              {"perturbation", std::string("none")},
                                              {"step", made.last_step}};
  if (made.name != "softmax") labels["metric_estimator"] = std::string("difference");
  std::map<std::string, LabelValue> training = labels;
  training["source"] = std::string("train");
  training["split"] = std::string("valid");
  training["leaks_future"] = made.leaks_future;
  std::vector<Record> records = {{"perplexity", std::exp(made.clean + 0.1), 500, training}};

  const auto num_blocks = static_cast<int64_t>(made.blocks.size());
  records.push_back(
      {"perplexity", std::exp(made.clean), num_blocks > 0 ? 10 * num_blocks : 1000, labels});
  for (int64_t i = 0; i < num_blocks; ++i) {
    auto of_block = labels;
    of_block["block"] = i;
    of_block["targets"] = std::string("all");
    records.push_back(
        {"block_nll", made.clean + made.blocks[static_cast<size_t>(i)], 10, of_block});
  }
  if (made.swapped) {
    labels["perturbation"] = std::string("word_swap");
    labels["swap_rate"] = 0.025;
    records.push_back({"perplexity", std::exp(*made.swapped), 1000, labels});
    records.push_back({"perplexity_clean_targets", std::exp(*made.swapped - 0.1), 970, labels});
    records.push_back({"perplexity_swapped_targets", std::exp(*made.swapped + 3), 30, labels});
  }
  return records;
}

report::RunData run_data(const MadeRun& made) {
  return {.folder = "runs/" + made.name + "-seed-" + std::to_string(made.seed),
          .name = made.name,
          .task = made.task,
          .measures = &measure::find_measures(tasks_of_program(), made.task),
          .seed = made.seed,
          .config = config_text(made),
          .records = records_of(made)};
}

report::RunData picture_run(const std::string& name, int64_t seed, double clean, double corrupted) {
  MadeRun made{.name = name, .seed = seed};
  made.task = "classify_image";
  report::RunData run = run_data(made);
  run.records.clear();
  add_measurement(run, "accuracy", clean, {});
  add_measurement(run, "accuracy", corrupted,
                  {{"perturbation", std::string("corruption")},
                   {"corruption", std::string("fog")},
                   {"severity", int64_t{3}}});
  run.log = {{"loss", 1.0, 1, {{"images_per_second", 250.0}, {"step", int64_t{1}}}}};
  return run;
}

void add_measurement(report::RunData& run,
                     const std::string& metric,
                     double value,
                     const std::map<std::string, LabelValue>& labels,
                     int64_t count) {
  const MadeRun made;
  std::map<std::string, LabelValue> all = labels;
  all.insert({{"source", std::string("eval")},
              {"data", made.data},
              {"split", made.split},
              {"perturbation", std::string("none")},
              {"step", made.last_step}});
  run.records.push_back({metric, value, count, all});
  for (int64_t block = 0; block < 10; ++block) {
    all["block"] = block;
    all["cut"] = std::string("balanced");
    all["pictures"] = count;
    run.records.push_back({"block_" + metric, value + (block % 2 == 0 ? 1 : -1), count / 10, all});
  }
}

void add_attack(report::RunData& run,
                const std::string& attack,
                double eps,
                double value,
                std::map<std::string, LabelValue> labels,
                int64_t count) {
  labels.insert({{"source", std::string("attack")},
                 {"attack", attack},
                 {"eps", eps},
                 {"profile", std::string("strict")},
                 {"metric_gradient", std::string("through")},
                 {"attack_seed", int64_t{1}}});
  add_measurement(run, "robust_accuracy", value, labels, count);
}

const report::MethodRow& row_of(const report::Comparison& comparison, const std::string& name) {
  for (const report::MethodRow& row : comparison.rows) {
    if (row.name == name) return row;
  }
  throw std::runtime_error("no row " + name);
}

std::vector<std::string> measures_of(const report::Comparison& comparison) {
  std::vector<std::string> names;
  for (const report::Column& column : comparison.columns) names.push_back(column.name);
  return names;
}

}  // namespace elliptical::test
