// SPDX-License-Identifier: MIT
//
// By what methods are compared: a number, which way is better, and how its parts make the whole.
// Perplexities are compared as ratios, in percent; accuracies and corruption errors, which are
// percent themselves, as differences, in points.
//
// A difference can be too small for anybody to care and yet larger than the noise, which is next to
// nothing where trainings of one seed are short. The margin of equivalence is the smallest
// difference that can matter, 0.05 each: less becomes 0.0 in a table with one decimal. Of
// perplexity 30 that is 0.015, of 10,000 pictures five.
#pragma once

#include <string>

namespace elliptical::measure {

/// How parts of the data that are counted apart make the number of all of them.
enum class Whole {
  /// A part's value is a level (see below), the whole has the mean of them, weighed by their
  /// counts.
  kMean,
  /// A part has a numerator and a denominator, or several pairs of them, one for each class. The
  /// whole is the ratio of their sums, of several the mean of these ratios: IoU, bits per byte.
  kRatioOfSums
};

struct Measure {
  const char* name;             ///< as people read it: "perplexity", "mCE"
  const char* unit;             ///< of a difference: "%", "points"
  const char* value_unit = "";  ///< of the number itself: "%" where it is a percentage
  bool is_ratio = false;        ///< methods are compared by the ratio of their numbers
  bool higher_is_better = false;
  double margin = 0;  ///< of equivalence, in `unit`
  Whole whole = Whole::kMean;
  double scale = 1;         ///< of a ratio of sums: 100 where it is told in percent
  const char* remark = "";  ///< a sentence for readers who meet it first

  std::string title() const;  ///< its name at the beginning of a sentence: "Perplexity"
  bool is_gain(double difference) const { return higher_is_better == (difference > 0); }
  /// What is averaged and subtracted: logarithms of ratios, or the values themselves.
  double level(double value) const;
  double from_level(double level) const;
  /// A difference of levels, in `unit`.
  double shown(double difference) const;
};

}  // namespace elliptical::measure
