// SPDX-License-Identifier: MIT
//
// A record of an evaluation as tests of this room make it up, and tasks whose records they are.
#pragma once

#include <map>
#include <string>
#include <utility>

#include "elliptical/base/records.h"
#include "elliptical/tasks/classify_image_measures.h"
#include "elliptical/tasks/language_model_measures.h"

namespace elliptical::measure {

inline constexpr const TaskMeasures& kText = tasks::kLanguageModelMeasures;
inline constexpr const TaskMeasures& kPictures = tasks::kClassifyImageMeasures;

/// `labels` join, or take the place of, what says that nothing was done to the data.
inline Record record_of(std::map<std::string, LabelValue> labels) {
  labels.insert({{"data", std::string("d")},
                 {"perturbation", std::string("none")},
                 {"source", std::string("eval")},
                 {"split", std::string("test")}});
  return {.metric = "accuracy", .value = 50, .count = 8, .labels = std::move(labels)};
}

}  // namespace elliptical::measure
