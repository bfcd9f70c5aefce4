// SPDX-License-Identifier: MIT
//
// A comparison as `compare` and `demo` ask for it: recipes are trained, measured and printed side
// by side.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "elliptical/measure/chosen_damage.h"
#include "elliptical/run/run_options.h"

namespace elliptical::cli {

/// What is absent was not asked for: the usual is done, and the command that is advised for next
/// time does not name it.
struct CompareRequest {
  std::vector<std::filesystem::path> recipes;  ///< none: the table of what is there
  run::RecipeRequest changes;                  ///< of every recipe
  std::filesystem::path folder;                ///< that the run folders are in
  std::string seeds = "3", format = "table";
  std::optional<std::string> controls, attacks, eps, method, split, reference;
  measure::GivenDamage damage = {};
  std::optional<int64_t> num_pictures;
  std::optional<int> num_jobs;
  int num_threads = 0;  ///< 0: all cores
};

/// Does it and prints the table; the exit status: 0 where all runs are whole.
int compare(const CompareRequest& request);

}  // namespace elliptical::cli
