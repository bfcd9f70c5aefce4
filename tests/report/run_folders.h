// SPDX-License-Identifier: MIT
//
// Made-up runs for the tests of tables: a configuration and the records of a finished run.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "elliptical/report/run_data.h"

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

std::string config_text(const MadeRun& made);
std::vector<Record> records_of(const MadeRun& made);

/// As read_runs would give it.
report::RunData run_data(const MadeRun& made);

}  // namespace elliptical::test
