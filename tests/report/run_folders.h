// SPDX-License-Identifier: MIT
//
// Made-up runs for the tests of tables: a configuration and the records of a finished run.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "elliptical/report/comparison.h"

namespace elliptical::test {

struct MadeRun {
  std::string name = "softmax";
  int64_t seed = 1;
  std::string task = "language_model", data = "text";
  int64_t steps = 100, last_step = 100;
  double clean = 4.0;             ///< log-perplexity
  std::optional<double> swapped;  ///< the same on swapped text
  std::vector<double> blocks;  ///< block_nll of clean text, relative to `clean`, of 10 targets each
  std::string split = "test";
  bool leaks_future = false;
  std::string more_config;  ///< further lines of its recipe
};

/// What the tasks of the program declare.
const measure::MeasureTable& tasks_of_program();

std::string config_text(const MadeRun& made);
std::vector<Record> records_of(const MadeRun& made);

/// As read_runs would give it.
report::RunData run_data(const MadeRun& made);

/// A run on pictures: accuracy in percent, clean and in fog, of 100 pictures in 10 parts that lie
/// around it.
report::RunData picture_run(const std::string& name, int64_t seed, double clean, double corrupted);

/// Adds a value and its 10 parts of equal size to the records of such a run. `labels` join what
/// says that nothing was done to the pictures, or take its place.
void add_measurement(report::RunData& run,
                     const std::string& metric,
                     double value,
                     const std::map<std::string, LabelValue>& labels,
                     int64_t count = 100);

/// The same of robust accuracy under an attack of the strict profile.
void add_attack(report::RunData& run,
                const std::string& attack,
                double eps,
                double value,
                std::map<std::string, LabelValue> labels = {},
                int64_t count = 50);

/// Of a comparison: the row of a method, the names of the columns.
const report::MethodRow& row_of(const report::Comparison& comparison, const std::string& name);
std::vector<std::string> measures_of(const report::Comparison& comparison);

}  // namespace elliptical::test
