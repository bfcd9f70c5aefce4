// SPDX-License-Identifier: MIT
//
// The statistics of comparisons: how much of a difference is noise. Everything random is a function
// of a key, so the same records give the same intervals.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "elliptical/base/random.h"

namespace elliptical::report {

struct Interval {
  double low = 0, high = 0;
  bool excludes_zero() const { return low > 0 || high < 0; }
};

/// A draw from Student's distribution with `degrees` of freedom.
double draw_student_t(RandomStream& random, double degrees);

/// The value below which a part `p` of the sorted values lies, interpolated between neighbours.
double quantile(const std::vector<double>& sorted, double p);

/// Standard deviation (n - 1); two values at least.
double standard_deviation(const std::vector<double>& values);

/// What one training adds at random.
struct TrainingNoise {
  double deviation = 0;
  int64_t degrees = 0;  ///< of freedom: how well the deviation is known
};

/// The residual of a table of methods (rows) and seeds (columns) after the best method means and
/// seed means, in the sense of least squares; cells may be missing. Nothing where no degree of
/// freedom is left: one seed, or one method.
std::optional<TrainingNoise> training_noise(
    const std::vector<std::vector<std::optional<double>>>& table);

/// A part of the text: how far two methods differ on it, averaged over seeds, and its weight.
struct BlockDifference {
  double value = 0;
  double weight = 0;
};

/// Parts of the data, to be drawn with replacement.
struct DataParts {
  size_t count = 0;
  /// How far two methods differ on the parts that are drawn, by their places and each perhaps
  /// several times, in the level of their measure. Nothing where it can not be told.
  std::function<std::optional<double>(const std::vector<size_t>& drawn)> difference = {};
};

/// Of measures whose whole is a mean: the mean of the parts' differences, by their weights.
DataParts parts_of_mean(const std::vector<BlockDifference>& blocks);

/// The middle 95 % of the bootstrap that comparison.h describes. Without parts it covers the noise
/// of training alone.
Interval difference_interval(double difference,
                             int64_t num_seeds,
                             const TrainingNoise& noise,
                             const DataParts& parts,
                             int64_t num_replicates,
                             RandomKey key);

}  // namespace elliptical::report
