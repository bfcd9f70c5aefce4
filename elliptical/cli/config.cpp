// SPDX-License-Identifier: MIT
//
// `elliptical config RECIPE`: the effective recipe, what training it costs by arithmetic, and how
// long it takes at the speed measured here. The output is itself a recipe: the costs stand in
// comments.
#include <fmt/format.h>
#include <torch/torch.h>

#include <iostream>
#include <nlohmann/json.hpp>

#include "elliptical/base/config.h"
#include "elliptical/base/printable.h"
#include "elliptical/cli/progress_printer.h"
#include "elliptical/cli/session.h"
#include "elliptical/cli/table.h"
#include "elliptical/run/speed.h"
#include "elliptical/run/train.h"

namespace elliptical::cli {
namespace {

constexpr int kMeasuredSteps = 3;

/// "44,018,394"
std::string grouped(int64_t number) {
  std::string text;
  const std::string digits = std::to_string(number);
  for (size_t i = 0; i < digits.size(); ++i) {
    if (i > 0 && (digits.size() - i) % 3 == 0) text += ',';
    text += digits[i];
  }
  return text;
}

struct Estimate {
  tasks::Cost cost;
  int64_t steps = 0;
  double step_seconds = 0;      ///< 0: not measured
  int64_t rehearsal_units = 0;  ///< in a measured step
  std::string unit = "units";
  double total_flops() const { return cost.flops_per_step * static_cast<double>(steps); }
  double hours() const { return step_seconds * static_cast<double>(steps) / 3600; }
};

Estimate estimate(const run::RunOptions& options, bool measure) {
  run::RunOptions copy = options;
  const tasks::TaskEntry& entry = tasks::find_task(copy.task.name());
  Estimate result{.steps = options.train.steps};
  if (entry.cost) result.cost = entry.cost(copy.task.options());
  if (measure && entry.rehearse) {
    const std::unique_ptr<tasks::Task> task = entry.rehearse(copy.task.options());
    result.unit = task->unit();
    result.rehearsal_units = task->train_batch(0).num_units;
    const run::StepTime time = run::measure_step(*task, options.optimizer, kMeasuredSteps);
    result.step_seconds = time.seconds(result.cost.units_per_step);
  }
  return result;
}

void print_comments(const Estimate& e) {
  const tasks::Cost& cost = e.cost;
  std::cout << fmt::format("# parameters      {}\n", grouped(cost.num_parameters))
            << fmt::format(
                   "# a step          {} {}, {:.4g} GFLOP (products and attention, forward and "
                   "backward)\n",
                   grouped(cost.units_per_step), e.unit, cost.flops_per_step / 1e9)
            << fmt::format("# in all          {} steps, {} {}", grouped(e.steps),
                           grouped(cost.units_per_step * e.steps), e.unit);
  if (cost.units_per_epoch > 0) {
    std::cout << fmt::format(" = {:.3g} epochs",
                             static_cast<double>(cost.units_per_step * e.steps) /
                                 static_cast<double>(cost.units_per_epoch));
  }
  std::cout << fmt::format(", {:.4g} PFLOP\n", e.total_flops() / 1e15)
            << fmt::format("# memory          about {:.2g} GiB\n", cost.bytes / (1 << 30));
  if (e.step_seconds > 0) {
    std::cout << fmt::format(
        "# time here       about {:.3g} hours, {} {}/s, {:.3g} GFLOP/s on {} threads; estimated "
        "from the fastest of {}\n"
        "#                 steps of this model with {} made-up {}; evaluation comes on top\n",
        e.hours(), run::rate_text(static_cast<double>(cost.units_per_step) / e.step_seconds),
        e.unit, cost.flops_per_step / e.step_seconds / 1e9, at::get_num_threads(), kMeasuredSteps,
        e.rehearsal_units, e.unit);
  }
}

void print_json(run::RunOptions& options, const Estimate& e) {
  nlohmann::ordered_json json;
  for (const FieldText& field : describe(fields_of(options))) {
    json["options"].push_back(
        {{"key", field.key}, {"type", field.type}, {"value", field.value}, {"help", field.help}});
  }
  json["cost"] = {{"parameters", e.cost.num_parameters},
                  {"units_per_step", e.cost.units_per_step},
                  {"flops_per_step", e.cost.flops_per_step},
                  {"steps", e.steps},
                  {"flops", e.total_flops()},
                  {"bytes", e.cost.bytes}};
  if (e.step_seconds > 0) {
    json["cost"]["step_seconds"] = e.step_seconds;
    json["cost"]["hours"] = e.hours();
  }
  std::cout << json.dump(2) << "\n";
}

void print_fields(run::RunOptions& options) {
  Table table{.columns = {"option", "type", "value", "what it is"}};
  for (const FieldText& field : describe(fields_of(options))) {
    table.rows.push_back({field.key, field.type, field.value, field.help});
  }
  print_text(std::cout, table);
}

}  // namespace

int config(const Arguments& arguments) {
  CLI::App app("The effective recipe, what training it costs, and how long it takes here.",
               "config");
  run::RecipeRequest recipe;
  std::string format = "toml";
  bool no_measure = false;
  int threads = 0;
  app.add_option("RECIPE", recipe.recipe, "TOML file, see recipes/")->required();
  add_overrides(app, recipe);
  app.add_flag("--no-measure", no_measure,
               "do not measure this machine's speed (it takes a few steps)");
  add_threads(app, threads);
  app.add_option("--format", format, "toml, table (all options with their help) or json")
      ->check(one_of({"toml", "table", "json"}));
  if (!parse(app, arguments)) return 0;

  use_threads(threads);
  run::RunOptions options = run::read_options(recipe);
  if (format == "table") {
    print_fields(options);
    return 0;
  }
  const Estimate e = estimate(options, !no_measure);
  if (format == "json") {
    print_json(options, e);
  } else {
    print_comments(e);
    std::cout << "\n" << printable(run::config_text(options), LineEnds::kKeep);
  }
  return 0;
}

}  // namespace elliptical::cli
