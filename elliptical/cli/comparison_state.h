// SPDX-License-Identifier: MIT
//
// What of a run of a comparison is there already, read from its folder: a comparison that was
// stopped goes on with the rest.
#pragma once

#include "elliptical/run/comparison_work.h"

namespace elliptical::cli {

run::RunState state_of(const run::PlannedRun& planned, const run::ComparisonWork& work);

}  // namespace elliptical::cli
