// SPDX-License-Identifier: MIT
//
// What measuring a run of a comparison costs beside its training, counted in steps of training, so
// that the time of all can be guessed from the speed of some. No data are read where the catalog
// knows their size.
#pragma once

#include <string>
#include <vector>

#include "elliptical/run/comparison_work.h"

namespace elliptical::run {

/// Of attacks at most: a pass of a picture counts like one in training. Classes and pictures are
/// counted without reading the data, so it is a guess.
double attack_steps(const std::vector<AttackCase>& cases,
                    const PlannedRun& planned,
                    int64_t num_pictures);

/// Tokens of the text of a comparison by sliding windows, which all runs share; 0 of others.
int64_t num_sliding_tokens(const ComparisonWork& work);

/// Of one evaluation by a sliding window: a forward pass counts as a third of a step. 0 of other
/// methods, whose cost is next to nothing.
double sliding_steps(const PlannedRun& planned, const ComparisonWork& work);

/// One line for people before a comparison by sliding windows begins, of `num_evaluations` of the
/// first run's size; empty for other methods.
std::string sliding_cost_text(const ComparisonWork& work, size_t num_evaluations);

}  // namespace elliptical::run
