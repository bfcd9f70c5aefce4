// SPDX-License-Identifier: MIT
//
// Scores of attacks as records (docs/attacks.md).
#pragma once

#include <vector>

#include "elliptical/run/attack_plan.h"
#include "elliptical/run/attack_state.h"
#include "elliptical/run/evaluate.h"
#include "elliptical/tasks/classifier.h"

namespace elliptical::run {

/// `scores`: one a case, in the order of the plan, of a model of so many classes. `labels` join
/// those of the cases. The set says which parts of its pictures are recorded apart.
std::vector<Record> attack_records(const AttackPlan& plan,
                                   const std::vector<AttackScore>& scores,
                                   int64_t num_classes,
                                   const Labels& labels,
                                   const tasks::PictureSet& set);

/// Appends those records that the file has not, to the letter: an attack that had been finished
/// before measures nothing new. Damaged lines are passed over.
void append_new_records(const std::filesystem::path& path, const std::vector<Record>& records);

}  // namespace elliptical::run
