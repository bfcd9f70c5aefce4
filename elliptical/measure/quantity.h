// SPDX-License-Identifier: MIT
//
// What the methods of a comparison are compared by. Perplexities are compared as ratios, in
// percent; accuracies and corruption errors, which are percent themselves, as differences, in
// points.
//
// A difference can be too small for anybody to care and yet larger than the noise, which is next to
// nothing where trainings of one seed are short. The margin of equivalence is the smallest
// difference that can matter, 0.05 each: less becomes 0.0 in a table with one decimal. Of
// perplexity 30 that is 0.015, of 10,000 pictures five.
#pragma once

namespace elliptical::measure {

struct Quantity {
  const char* metric;
  const char* unit;     ///< of a difference: "%", "points"
  const char* data;     ///< what it is measured on: "text", "pictures"
  const char* damaged;  ///< what damaged data are called
  bool is_ratio;
  bool higher_is_better;
  double margin;  ///< of equivalence, in `unit`

  bool is_gain(double difference) const { return higher_is_better == (difference > 0); }
};
inline constexpr Quantity kPerplexity{.metric = "perplexity",
                                      .unit = "%",
                                      .data = "text",
                                      .damaged = "swapped",
                                      .is_ratio = true,
                                      .higher_is_better = false,
                                      .margin = 0.05};
inline constexpr Quantity kAccuracy{.metric = "accuracy",
                                    .unit = "points",
                                    .data = "pictures",
                                    .damaged = "corrupted",
                                    .is_ratio = false,
                                    .higher_is_better = true,
                                    .margin = 0.05};
inline constexpr Quantity kCorruptionError{.metric = "mCE",
                                           .unit = "points",
                                           .data = "pictures",
                                           .damaged = "corrupted",
                                           .is_ratio = false,
                                           .higher_is_better = false,
                                           .margin = 0.05};

}  // namespace elliptical::measure
