// SPDX-License-Identifier: MIT
//
// The command that measures a run again, as a record tells how it was measured or as circumstances
// ask for it: what is as in training, or usual, is left out of it.
#pragma once

#include <map>
#include <string>

#include "elliptical/base/records.h"
#include "elliptical/measure/circumstances.h"
#include "elliptical/measure/task_measures.h"

namespace elliptical::measure {

/// Which run is to be measured.
struct CommandTarget {
  std::string folder;
  /// The options of its recipe, by key ("task.model.window"): evaluations have them unless told
  /// otherwise. Of a run that is not known: none, and nothing is said about such options.
  std::map<std::string, std::string> trained = {};
};

/// The command that gives the number of this record again: of its weights, after its step.
std::string measuring_command(const Record& record,
                              const TaskMeasures& measures,
                              const CommandTarget& target);

/// The command that measures a run in these circumstances, with parts of the data recorded apart.
std::string measuring_command(const Circumstances& circumstances,
                              const TaskMeasures& measures,
                              const CommandTarget& target);

}  // namespace elliptical::measure
