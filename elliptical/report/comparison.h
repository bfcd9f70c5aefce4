// SPDX-License-Identifier: MIT
//
// Which differences between methods are larger than the noise of training and of the data they were
// measured on? Runs of equal seed are paired: same data order, same initial weights where shapes
// agree. With y[a,s] the log-perplexity of method a and seed s, or its accuracy in percent, the
// difference of two methods is the mean over the seeds that both have of y[a,s] - y[b,s], printed
// in percent of perplexity, or in points of accuracy (measure/measure.h). Columns are what was
// measured: clean data, damaged data, and each attack that at least two methods have been measured
// under.
//
// Its interval covers seeds and data together, because an interval over blocks of data alone
// excludes zero even for two trainings of the same model. With a few seeds the spread of one pair
// is too uncertain to be used by itself, so the noise of training is pooled over all methods: the
// residual of the table y[a,s] after method means and seed means, with (A-1)(S-1) degrees of
// freedom. One replicate of the bootstrap is
//
//     difference  +  noise sqrt(2 / S) t   +   (difference on resampled blocks - difference)
//
// with t from Student's distribution of these degrees of freedom, and blocks of data drawn with
// replacement, the same for both methods and all seeds. The interval is the middle 95 % of
// `num_replicates` of them. One seed has no interval, and the comparison says so. What lies within
// the margin of equivalence (measure/measure.h) as a whole is equal, whatever the noise.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "elliptical/measure/measurements.h"
#include "elliptical/report/run_data.h"
#include "elliptical/report/statistics.h"

namespace elliptical::report {

/// What a method is in a comparison.
enum class Role { kReference, kMethod, kControl };

/// Of two methods, in percent or points; the measure says which sign is better.
struct Difference {
  double percent = 0;
  int64_t num_seeds = 0;
  std::optional<Interval> interval;  ///< absent with one seed
};

/// What a difference comes to.
enum class Verdict {
  kOneSeed,  ///< no interval: nothing can be said
  kEqual,    ///< the whole interval lies within the margin of equivalence
  kSmall,    ///< the interval excludes zero, but the difference lies within the margin
  kWithin,   ///< within the noise: the interval holds zero
  kOutside   ///< outside the noise, and large enough to matter
};
Verdict verdict_of(const Difference& difference, const measure::Measure& measure);
/// "one seed", "equal", "too small to matter", "within the noise", "outside the noise"
const char* to_string(Verdict verdict);

/// One of the things measured of every run.
struct Column {
  std::string name;   ///< "clean", "pgd, eps 1/255"; no two have the same
  std::string place;  ///< the same in a sentence: "on clean text", "under pgd (eps 1/255)"
  const measure::Measure* measure = nullptr;  ///< never null in a comparison
  measure::Condition condition = measure::Condition::kClean;
  std::string perturbation = {};        ///< of damaged data: by what
  bool has_own_section = false;         ///< see measure::ComparedNumber
  int64_t num_pictures = 0;             ///< only so many; 0: all
  int64_t num_all = 0;                  ///< of so many; 0: unknown
  int64_t num_classes = 0;              ///< of which they are alike; 0: they are the first
  std::optional<double> noise_percent;  ///< of one training, in percent or points; absent with one
                                        ///< seed
};

struct Cell {
  std::vector<double> values;               ///< in the order of `MethodRow::seeds`
  double mean = 0;                          ///< geometric where differences are ratios
  std::optional<double> deviation_percent;  ///< standard deviation over seeds; absent with one
  std::optional<Difference> to_reference, to_matched;
};

struct MethodRow {
  std::string name;
  Role role = Role::kMethod;
  std::vector<int64_t> seeds;
  std::vector<std::optional<Cell>> cells;  ///< like Comparison::columns
  std::optional<double> units_per_second;
  bool leaks_future = false;
};

/// What was done to damaged data.
struct MeasuredDamage {
  const measure::Perturbation* perturbation;
  std::string kind = {};  ///< where it has several
  double strength = 0;    ///< 0 where nothing was measured
};

struct Comparison {
  std::string task, data, split;
  measure::Reading reading;  ///< of all columns
  /// What its task declares: what it is compared by, which data.
  const measure::TaskMeasures* measures = &measure::kNoMeasures;
  std::string unit = "tokens";  ///< that the speed of training is counted in
  /// What was measured on damaged data, in the order of the task; where nothing was, what is usual.
  std::vector<MeasuredDamage> damages;
  std::vector<Column> columns;        ///< clean, damaged, attacked as first recorded
  std::string reference;              ///< name of the method that others are compared with
  std::string matched;                ///< name of the matched constant, empty when there is none
  std::vector<MethodRow> rows;        ///< reference first, then methods, then controls
  std::vector<std::string> problems;  ///< what could not be compared, and what to do about it
  std::vector<std::string> remarks;   ///< what is worth knowing beside: it takes nothing away
  bool is_smoke = false;              ///< some of the runs are shrunk ones of --smoke
  bool has_non_finite = false;        ///< some number could not be compared for not being finite

  /// The place of the column of these data that is of the main measure of the task; their number
  /// where there is none.
  size_t main_column(measure::Condition condition) const;
  /// What damaged data are called: "swapped"; "" where nothing can be done to them.
  std::string damaged() const {
    return damages.empty() ? "" : damages.front().perturbation->damaged;
  }
  /// Whether anything can be said about differences at all: with one seed not.
  bool has_intervals() const;
};

/// What is said wherever numbers of smoke runs are shown.
inline constexpr const char* kSmokeBanner =
    "These are smoke runs, shrunk by --smoke to end within seconds: their numbers mean nothing.";

/// What is wanted of damaged data; what is absent: as most runs were measured.
struct WantedDamage {
  std::optional<std::string> kind = {};
  std::optional<double> strength = {};
};

struct ComparisonOptions {
  std::string reference = "softmax";  ///< the first method when there is none of this name
  std::string split;                  ///< empty: test where it was measured, else validation
  std::map<std::string, WantedDamage> damages;  ///< by perturbation
  std::string method;  ///< of reading text; empty: as most runs were measured, "block" of equals
  std::optional<int64_t> num_pictures;  ///< 0, or as many as there are: all
  int64_t num_replicates = 10000;
  uint64_t seed = 1;
};

/// Attacks that have columns, at most.
inline constexpr size_t kMaxAttackColumns = 24;

/// The finished runs of one task on one data set; others are named in `problems`.
Comparison compare_runs(const std::vector<RunData>& runs, const ComparisonOptions& options = {});

/// "+0.33", "-1.03", "0.00"
std::string percent_text(double percent);

/// What the table says, in sentences: which methods differ from the reference and from the matched
/// constant by more than the noise, whether the null twin does, what is missing. Of one seed and of
/// smoke runs there are no sentences about differences, but one that says why.
std::vector<std::string> in_words(const Comparison& comparison);

}  // namespace elliptical::report
