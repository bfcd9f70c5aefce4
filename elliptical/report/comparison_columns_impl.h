// SPDX-License-Identifier: MIT
//
// Which measurements of runs are the columns of their comparison: like is compared with like, so
// clean and damaged data as most runs were measured on them, and each attack that runs of two
// methods have.
#pragma once

#include <string>
#include <vector>

#include "elliptical/report/comparison.h"

namespace elliptical::report {

/// A run of the table with what was measured of it.
struct MeasuredRun {
  const RunData* run;
  measure::Measurements all;
  std::vector<const measure::Measurement*> chosen =
      {};  ///< by column; null: not measured, not usable
};

struct ColumnChoice {
  std::string split;
  measure::Reading reading;  ///< of clean data, else of damaged ones
  std::vector<MeasuredDamage> damages;
  std::vector<Column> columns;
  std::vector<std::string> problems;  ///< runs that lack a column, with the command that helps
  std::vector<std::string> remarks;   ///< what attacks noticed that takes nothing from a number
  bool has_non_finite = false;
};

/// Fills `chosen` of the runs.
ColumnChoice choose_columns(std::vector<MeasuredRun>& runs, const ComparisonOptions& options);

}  // namespace elliptical::report
