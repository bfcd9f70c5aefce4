// SPDX-License-Identifier: MIT
//
// Training steps of the language model against PyTorch eager: tokens per second of everybody, then
// the ratios that are to be shown.
#include "elliptical/cli/bench_training.h"

#include <fmt/format.h>
#include <torch/torch.h>

#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "bench/training.h"
#include "elliptical/base/errors.h"
#include "elliptical/cli/bench_output.h"
#include "elliptical/cli/table.h"

namespace elliptical::cli {
namespace {

using bench::TrainingCase;
using bench::TrainingResult;

std::vector<TrainingCase> training_cases(bool quick) {
  if (quick) return {bench::tiny_case()};
  return {{.vocabulary_size = 33278}, {.vocabulary_size = 267735}};
}

struct TrainingName {
  const char* attention;
  bool is_torch;
  std::string text() const { return std::string(is_torch ? "torch " : "") + attention; }
};
constexpr TrainingName kTrainingNames[] = {
    {"softmax", false}, {"softmax", true}, {"elliptical", false}, {"elliptical", true}};

std::string full_name(const TrainingCase& shape, const TrainingName& name) {
  return fmt::format("{}/{}", shape.vocabulary_size, name.text());
}

const TrainingResult* find(const std::vector<TrainingResult>& results,
                           int64_t vocabulary_size,
                           const std::string& trainer) {
  for (const TrainingResult& result : results) {
    if (result.shape.vocabulary_size == vocabulary_size && result.trainer == trainer) {
      return &result;
    }
  }
  return nullptr;
}

void print_ratios(const std::vector<TrainingResult>& results, bool quick) {
  Table table{.columns = {"vocabulary", "ours", "against", "ratio", "median", "must", "target"}};
  for (const TrainingCase& shape : training_cases(quick)) {
    for (const bench::TrainingTarget& target : bench::training_targets()) {
      const TrainingResult* ours = find(results, shape.vocabulary_size, target.ours);
      const TrainingResult* peer = find(results, shape.vocabulary_size, target.peer);
      if (!ours || !peer) continue;
      const double ratio = peer->timing.min / ours->timing.min;
      table.rows.push_back({std::to_string(shape.vocabulary_size), target.ours, target.peer,
                            fmt::format("{:.2f}", ratio),
                            fmt::format("{:.2f}", peer->timing.median / ours->timing.median),
                            fmt::format("{:.2f}", target.must),
                            ratio >= target.must ? "reached" : "below"});
    }
  }
  if (!table.rows.empty()) {
    std::cout << "\n";
    print_text(std::cout, table);
  }
}

nlohmann::ordered_json record(const TrainingResult& row, const Machine& machine) {
  nlohmann::ordered_json record{{"what", "training"},
                                {"trainer", row.trainer},
                                {"vocabulary_size", row.shape.vocabulary_size},
                                {"batch", row.shape.batch},
                                {"window", row.shape.window},
                                {"num_parameters", row.num_parameters},
                                {"tokens_per_second", row.tokens_per_second()},
                                {"min_s", row.timing.min},
                                {"median_s", row.timing.median},
                                {"steps", row.timing.calls},
                                {"loss", row.loss},
                                {"dtype", "float32"}};
  add_machine(machine, record);
  return record;
}

void print_table(const std::vector<TrainingResult>& results, const Machine& machine, bool quick) {
  Table table{
      .columns = {"vocabulary", "trainer", "parameters", "tokens/s", "median", "s/step", "loss"}};
  for (const TrainingResult& row : results) {
    const auto tokens = static_cast<double>(row.shape.num_tokens());
    table.rows.push_back({std::to_string(row.shape.vocabulary_size), row.trainer,
                          std::to_string(row.num_parameters),
                          fmt::format("{:.0f}", row.tokens_per_second()),
                          fmt::format("{:.0f}", tokens / row.timing.median),
                          fmt::format("{:.3f}", row.timing.min), fmt::format("{:.3f}", row.loss)});
  }
  std::cout
      << machine_line(machine) << "\n"
      << "steps of the language model in turns; ratio = time of the other / ours, minimum\n\n";
  print_text(std::cout, table);
  print_ratios(results, quick);
}

}  // namespace

int bench_training(const TrainingBenchOptions& options) {
  std::vector<TrainingResult> results;
  bool any = false;
  for (const TrainingCase& shape : training_cases(options.quick)) {
    std::vector<std::unique_ptr<bench::Trainer>> trainers;
    for (const TrainingName& name : kTrainingNames) {
      if (full_name(shape, name).find(options.trainer_substring) == std::string::npos) continue;
      any = true;
      if (options.list_only) {
        std::cout << full_name(shape, name) << "\n";
      } else {
        std::cerr << "starting " << full_name(shape, name) << "\n";
        trainers.push_back(
            name.is_torch ? bench::make_torch_trainer(shape, name.attention, at::get_num_threads())
                          : bench::make_our_trainer(shape, name.attention));
      }
    }
    if (trainers.empty()) continue;
    std::vector<bench::Trainer*> pointers;
    for (const auto& trainer : trainers) pointers.push_back(trainer.get());
    const auto rows =
        bench::measure_training(shape, pointers, options.repeats, show_bench_progress);
    results.insert(results.end(), rows.begin(), rows.end());
  }
  if (!any) {
    throw UsageError(fmt::format("bench: no case has \"{}\" in its name (elliptical bench --list)",
                                 options.trainer_substring));
  }
  if (results.empty()) return 0;
  const Machine machine = this_machine();
  if (options.format == "table") {
    print_table(results, machine, options.quick);
    return 0;
  }
  auto records = nlohmann::ordered_json::array();
  for (const TrainingResult& row : results) records.push_back(record(row, machine));
  print_bench_records(records, options.format);
  return 0;
}

}  // namespace elliptical::cli
