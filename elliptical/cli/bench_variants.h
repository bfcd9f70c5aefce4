// SPDX-License-Identifier: MIT
//
// `elliptical bench --what variants`.
#pragma once

#include <string>

namespace elliptical::cli {

struct VariantsBenchOptions {
  std::string format = "table";
  std::string substring;  ///< only variants with this in their name
  int repeats = 20;
  bool quick = false;      ///< a tiny model, to see that it works
  bool list_only = false;  ///< names of variants, nothing measured
};

/// Time per training step and memory of every attention variant, as a table, JSON or CSV.
int bench_variants(const VariantsBenchOptions& options);

}  // namespace elliptical::cli
