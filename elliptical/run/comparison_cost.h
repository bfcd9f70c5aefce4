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

/// How much of the data evaluations of all runs have to read, where their cost depends on it.
int64_t num_eval_units(const ComparisonWork& work);

/// Of one evaluation; 0 where it costs next to nothing.
double eval_steps(const PlannedRun& planned, const ComparisonWork& work);

/// One line for people before a comparison with costly evaluations begins, of `num_evaluations` of
/// the first run's size; empty where they cost next to nothing.
std::string eval_cost_text(const ComparisonWork& work, size_t num_evaluations);

}  // namespace elliptical::run
