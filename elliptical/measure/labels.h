// SPDX-License-Identifier: MIT
//
// What the labels of a record say (base/records.h, docs/records.md). Records come from files,
// perhaps of other versions: a label may be absent or of another type. Every reader below says so
// by an empty value, and its caller says what that means.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "elliptical/base/records.h"

namespace elliptical::measure {

/// Nothing where there is no such label, or one of another type.
std::optional<std::string> text_label(const Record& record, const std::string& name);
std::optional<int64_t> whole_label(const Record& record, const std::string& name);
std::optional<bool> flag_label(const Record& record, const std::string& name);
/// Whole numbers are numbers, too.
std::optional<double> number_label(const Record& record, const std::string& name);

/// A label that must be there: T is std::string, int64_t, bool or double, and exactly that. Throws
/// DataError.
template <class T>
T required_label(const Record& record, const std::string& name);

/// Digits that tell a number from every other one.
inline constexpr int kAllDigits = 0;
/// As text, whatever its type: "true", "12", "0.025", "nan". With `digits` a number is rounded to
/// so many significant ones.
std::string label_text(const LabelValue& value, int digits = kAllDigits);
/// The same; "" where there is no such label.
std::string label_text(const Record& record, const std::string& name);

/// Who measured it, by the label `source`.
enum class Source {
  kTraining,    ///< "train": the validation while training
  kEvaluation,  ///< "eval": asked for
  kAttack,      ///< "attack"
  kOther        ///< of another version, or not said
};
const char* to_string(Source source);  ///< the label; kOther is none
Source source_of(const Record& record);

/// Of the weights; -1: not said.
int64_t step_of(const Record& record);

/// Of one of the parts of the data that are counted apart.
bool is_block(const Record& record);
/// Of one layer, head or coordinate of the model.
bool is_of_head(const Record& record);
/// Of one of the classes of the targets.
bool is_of_class(const Record& record);
/// Any of these: a part of a measurement, which is for programs.
bool is_part(const Record& record);
/// Label of the records of parts of pictures: all classes are alike in each of them. Records of
/// earlier versions have none: their parts were neighbours, which may be of one class.
inline constexpr const char *kCut = "cut", *kBalancedCut = "balanced";
/// Labels of a part of the data whose measure is a ratio of sums (measure.h); `class` says of which
/// class where there is one for each.
inline constexpr const char *kNumerator = "numerator", *kDenominator = "denominator",
                            *kClass = "class";

/// Of other weights than those that the run is measured by: another model.
bool is_of_other_weights(const Record& record);

}  // namespace elliptical::measure
