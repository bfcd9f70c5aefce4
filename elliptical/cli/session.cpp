// SPDX-License-Identifier: MIT
#include "elliptical/cli/session.h"

#include <fmt/format.h>
#include <torch/torch.h>

#include <map>
#include <ostream>
#include <set>

#include "elliptical/cli/table.h"
#include "elliptical/measure/circumstances.h"
#include "elliptical/measure/labels.h"
#include "elliptical/report/comparison.h"
#include "elliptical/run/measure_run.h"

namespace elliptical::cli {

const char* const kProgram = "elliptical " ELLIPTICAL_VERSION;

void add_overrides(CLI::App& app, run::RecipeRequest& recipe) {
  app.add_option("--set", recipe.assignments, "a.b=c: sets an option; may be repeated")
      ->allow_extra_args(false);
  app.add_flag("--smoke", recipe.smoke, "shrink everything to something that ends within seconds");
}

void add_threads(CLI::App& app, int& threads) {
  app.add_option("--threads", threads, "threads; all cores unless said")
      ->check(CLI::Range(1, 4096));
}

void use_threads(int threads) {
  if (threads > 0) at::set_num_threads(threads);
}

void add_weights(CLI::App& app, std::optional<run::Weights>& weights) {
  app.add_option_function<std::string>(
         "--weights",
         [&weights](const std::string& name) { weights = run::weights_from_string(name); },
         "trained, or ema: their moving average (train.ema_decay); as train.eval_weights unless "
         "said")
      ->check(one_of({"trained", "ema"}));
}

void add_step(CLI::App& app, int64_t& step) {
  app.add_option("--step", step, "which checkpoint; the newest unless said")
      ->check(CLI::NonNegativeNumber);
}

namespace {

/// Of labels that are numbers; everything else of a record has all of them.
constexpr int kDigits = 6;

/// One row a record. For people, parts and labels that are the same in all rows are left out.
Table records_table(std::vector<Record> records, bool all_labels) {
  // Classes are there because they were asked for.
  const auto is_hidden = [](const Record& record) {
    return measure::is_block(record) || measure::is_of_head(record);
  };
  if (!all_labels) std::erase_if(records, is_hidden);
  std::map<std::string, std::set<std::string>> values;
  for (const Record& record : records) {
    for (const auto& [name, value] : record.labels)
      values[name].insert(measure::label_text(value, kDigits));
  }
  Table table{.columns = {"metric", "value", "count"}};
  std::vector<std::string> shown;
  for (const auto& [name, different] : values) {
    if (all_labels || different.size() > 1) shown.push_back(name);
  }
  table.columns.insert(table.columns.end(), shown.begin(), shown.end());
  for (const Record& record : records) {
    std::vector<std::string> row = {
        record.metric, fmt::format(fmt::runtime(all_labels ? "{}" : "{:.6g}"), record.value),
        std::to_string(record.count)};
    for (const std::string& name : shown) {
      const auto label = record.labels.find(name);
      row.push_back(label == record.labels.end() ? ""
                                                 : measure::label_text(label->second, kDigits));
    }
    table.rows.push_back(std::move(row));
  }
  return table;
}

/// What the numbers are of and how they were measured, where that has a name: a perplexity without
/// its method says little.
std::string records_heading(const std::vector<Record>& records) {
  if (records.empty()) return "";
  const measure::Reading reading = measure::reading_of(records.front());
  const std::string text = measure::reading_text(reading);
  if (text.empty()) return "";
  return fmt::format("{} ({}), {}:", reading.data, measure::label_text(records.front(), "split"),
                     text);
}

}  // namespace

void warn_of_smoke(const run::RunOptions& options, const run::LoopHooks& hooks) {
  if (options.smoke.value_or(false)) hooks.say(report::kSmokeBanner);
}

void print_records(std::ostream& stream,
                   const std::vector<Record>& records,
                   const std::string& format) {
  if (format == "json") {
    stream << "[";
    for (size_t i = 0; i < records.size(); ++i) {
      stream << (i ? ",\n " : "\n ") << to_json_line(records[i]);
    }
    stream << "\n]\n";
  } else if (format == "csv") {
    print_csv(stream, records_table(records, true));
  } else {
    if (const std::string heading = records_heading(records); !heading.empty()) {
      stream << heading << "\n\n";
    }
    print_text(stream, records_table(records, false));
  }
}

}  // namespace elliptical::cli
