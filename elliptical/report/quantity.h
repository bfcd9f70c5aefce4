// SPDX-License-Identifier: MIT
//
// What the methods of a comparison are compared by. Perplexities are compared as ratios, in
// percent; accuracies and corruption errors, which are percent themselves, as differences, in
// points.
#pragma once

namespace elliptical::report {

struct Quantity {
  const char* metric;
  const char* unit;     ///< of a difference: "%", "points"
  const char* data;     ///< what it is measured on: "text", "pictures"
  const char* damaged;  ///< what damaged data are called
  bool is_ratio;
  bool higher_is_better;

  bool is_gain(double difference) const { return higher_is_better == (difference > 0); }
};
inline constexpr Quantity kPerplexity{.metric = "perplexity",
                                      .unit = "%",
                                      .data = "text",
                                      .damaged = "swapped",
                                      .is_ratio = true,
                                      .higher_is_better = false};
inline constexpr Quantity kAccuracy{.metric = "accuracy",
                                    .unit = "points",
                                    .data = "pictures",
                                    .damaged = "corrupted",
                                    .is_ratio = false,
                                    .higher_is_better = true};
inline constexpr Quantity kCorruptionError{.metric = "mCE",
                                           .unit = "points",
                                           .data = "pictures",
                                           .damaged = "corrupted",
                                           .is_ratio = false,
                                           .higher_is_better = false};

}  // namespace elliptical::report
