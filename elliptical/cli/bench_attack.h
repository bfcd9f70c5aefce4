// SPDX-License-Identifier: MIT
//
// `elliptical bench --what attack`.
#pragma once

#include <string>

namespace elliptical::cli {

struct AttackBenchOptions {
  std::string format;
  std::string substring;  ///< only attackers with this in their name
  int repeats = 3;
  bool quick = false;  ///< a tiny model, to see that it works
  bool list_only = false;
};

/// Seconds for PGD on a batch of pictures, ours and PyTorch's in turns, as a table, JSON or CSV.
int bench_attack(const AttackBenchOptions& options);

}  // namespace elliptical::cli
