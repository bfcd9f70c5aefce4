// SPDX-License-Identifier: MIT
//
// What the records of a run say about its weights after a step, ordered by the circumstances of the
// measurement, so that only like is compared with like.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "elliptical/base/records.h"
#include "elliptical/measure/circumstances.h"

namespace elliptical::measure {

/// A numerator and a denominator of a part of the data, of one class where there are several.
struct Ratio {
  int64_t of_class = 0;
  double numerator = 0, denominator = 0;
};

/// One of the equal parts of the data; parts without a target are left out.
struct Block {
  int64_t index = 0;
  double value = 0;  ///< a level (measure.h): mean of -log p, accuracy or error
  int64_t count = 0;
  std::vector<Ratio> ratios = {};  ///< where the whole is a ratio of sums, by class
};

struct Measurement {
  double value = 0;
  int64_t count = 0;          ///< targets
  size_t place = 0;           ///< among the records of the run, where it was first recorded
  std::vector<Block> blocks;  ///< all of the data, or none
  int64_t num_classes = 0;    ///< of the pictures; 0: unknown
  /// Why a robust accuracy may be too high (measure/attack_flags.h).
  std::vector<std::string> doubts = {};
  std::vector<std::string> remarks = {};  ///< of the attack, what takes nothing from the number
};

/// The record of a part of the data whose measure is a ratio of sums, one for each class where
/// there are several: `labels` say which part and class, `count` how many things the part has.
Record ratio_record(const std::string& metric,
                    double numerator,
                    double denominator,
                    int64_t count,
                    std::map<std::string, LabelValue> labels);

/// The number that parts of the data make together, those that are named by their places, each
/// perhaps several times. Nothing where there is nothing to divide by.
std::optional<double> whole_of(const Measure& measure,
                               const std::vector<Block>& blocks,
                               const std::vector<size_t>& drawn);

/// Per circumstances, by the place of the number in TaskMeasures::numbers.
using Measurements = std::map<Circumstances, std::map<size_t, Measurement>>;

/// The measurements that the records of a run tell of its weights after `step`. A later record of
/// the same thing takes the place of an earlier one. Evaluations with another scope of the metric
/// than the trained one, those of other weights than the run is measured by, attacks on damaged
/// data, and parts of pictures that do not have all classes alike, as earlier versions cut them,
/// are left out.
Measurements measurements_at(const std::vector<Record>& records,
                             int64_t step,
                             const TaskMeasures& measures);

/// Whether it is one of the numbers that runs are compared by, on undamaged data.
bool is_clean_number(const Record& record, const TaskMeasures& measures);

/// The last step that the records speak of; -1: none.
int64_t last_measured_step(const std::vector<Record>& records);

}  // namespace elliptical::measure
