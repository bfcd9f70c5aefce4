// SPDX-License-Identifier: MIT
//
// `elliptical bench --what vision`.
#pragma once

#include <string>

namespace elliptical::cli {

struct VisionBenchOptions {
  std::string format = "table";
  std::string runner_substring;  ///< only runners with this in "torch softmax"
  int repeats = 20;
  bool quick = false;      ///< a tiny model, to see that it works
  bool list_only = false;  ///< names of runners, nothing measured
};

int bench_vision(const VisionBenchOptions& options);

}  // namespace elliptical::cli
