// SPDX-License-Identifier: MIT
//
// What an attack noticed about a model, as its records tell it (docs/attacks.md), in words: whoever
// shows a robust accuracy shows why it may be too high.
#pragma once

#include <string>
#include <vector>

#include "elliptical/base/records.h"

namespace elliptical::measure {

/// Labels of records of attacks.
inline constexpr const char *kFlagRandomised = "flag_randomised",
                            *kFlagProbabilities = "flag_probabilities",
                            *kFlagZeroGradients = "flag_zero_gradients",
                            *kFlagSquareBeatsGradients = "flag_square_beats_gradients",
                            *kFlagFewClasses = "flag_few_classes",
                            *kSkippedStages = "skipped_stages";  ///< names with spaces

/// Why the robust accuracy of this record may be too high, one sentence each: "its answers differ
/// between passes over the same picture: flag_randomised (what to do)".
std::vector<std::string> attack_doubts(const Record& record);

/// What is worth knowing beside: flags that take nothing from the number.
std::vector<std::string> attack_remarks(const Record& record);

}  // namespace elliptical::measure
