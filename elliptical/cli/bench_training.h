// SPDX-License-Identifier: MIT
//
// `elliptical bench --what training`.
#pragma once

#include <string>

namespace elliptical::cli {

struct TrainingBenchOptions {
  std::string format = "table";
  std::string trainer_substring;  ///< only trainers with this in "33278/torch softmax"
  int repeats = 20;
  bool quick = false;      ///< a tiny model, to see that it works
  bool list_only = false;  ///< names of trainers, nothing measured
};

int bench_training(const TrainingBenchOptions& options);

}  // namespace elliptical::cli
