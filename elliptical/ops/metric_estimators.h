// SPDX-License-Identifier: MIT
//
// The estimators of the metric, and the controls that tell what a measured metric is worth: a table
// of what each is called, reads, takes and can do. Parsing and printing, checks, recipes, streams,
// docs/ops.md and the conformance tests come from it and from nowhere else. A new estimator is a
// row here, its row in docs/ops.md, and a file in estimators/ with the functions that it names.
#pragma once

#include <ATen/core/Tensor.h>

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace elliptical::ops {

struct MetricInputs;
struct MetricOptions;
class PrefixMetricState;

/// m for what passed the checks, by ATen operations alone, differentiable: (B, H, 1, D) in the
/// sequence scope, (B, H, N, D) in the prefix scope. Double, or float where v is narrower.
using EstimateMetric = at::Tensor(const MetricInputs&, const MetricOptions&);
/// The same by a kernel, where one applies.
using FusedMetric = std::optional<at::Tensor>(const MetricInputs&, const MetricOptions&);
/// The next rows of a stream, detached, from tokens that go on from what `state` has seen.
using NextMetricRows = at::Tensor(const MetricInputs&, const MetricOptions&, PrefixMetricState&);

namespace estimators {

EstimateMetric difference, median, quotient, consistent, jacobian, random, random_fixed, constant,
    isotropic, temperature;
FusedMetric difference_fused;
NextMetricRows difference_rows, quotient_rows, isotropic_rows;

}  // namespace estimators

/// A field that only some estimators have. `name` and `help` are those of a recipe; `points` and
/// `start` are of recipes alone, the others are fields of MetricOptions, too.
struct EstimatorOption {
  enum class Field {
    kDelta,
    kAttenuation,
    kPoints,
    kStep,
    kQueryStride,
    kLow,
    kSeed,
    kValue,
    kStart
  };
  Field field;
  const char* name;
  const char* help;
};

/// Tensors beside v.
struct EstimatorReads {
  bool v_prev = false, q = false, k = false, q_prev = false;  ///< tokens, of this layer or before
  bool temperature = false;                                   ///< a learned parameter
};

struct EstimatorRow {
  const char* name;
  const char* formula;  ///< of x, or of m, in words of docs/ops.md
  EstimatorReads reads = {};
  bool is_scaled = false;  ///< whether m is divided as MetricOptions::scaling says
  bool draws = false;      ///< whether it draws from MetricOptions::generator
  std::array<const EstimatorOption*, 2> options = {};  ///< null where there are fewer
  EstimateMetric* estimate = nullptr;
  FusedMetric* fused = nullptr;         ///< null: none
  NextMetricRows* next_rows = nullptr;  ///< null: a stream can not go on, if it reads tokens

  /// Whether it looks at tokens at all; the others are constant over a sequence.
  constexpr bool reads_tokens() const { return reads.v_prev || reads.q || reads.k || reads.q_prev; }
  /// Whether tokens of a prefix metric can be fed one by one.
  constexpr bool streams() const { return !reads_tokens() || next_rows != nullptr; }
  constexpr bool has(EstimatorOption::Field field) const {
    for (const EstimatorOption* option : options) {
      if (option != nullptr && option->field == field) return true;
    }
    return false;
  }
};

namespace estimator_options {

using Field = EstimatorOption::Field;
inline constexpr EstimatorOption kDelta{
    Field::kDelta, "delta", "divides the change of the values; cancels unless scaling = none"},
    kAttenuation{Field::kAttenuation, "attenuation", "added to the change of the queries"},
    kPoints{Field::kPoints, "points",
            "where the attention output is varied: queries, as in the public code, or keys, as in "
            "the paper"},
    kStep{Field::kStep, "step", "of the central difference; 0.5 / sqrt(D) when absent"},
    kQueryStride{Field::kQueryStride, "query_stride", "every how many queries it is evaluated"},
    kLow{Field::kLow, "low", "numbers are uniform in [low, 1)"},
    kSeed{Field::kSeed, "seed", "chooses the numbers"},
    kConstant{Field::kValue, "value", "of the metric, must be given"},
    kMatched{Field::kValue, "value",
             "of the metric: its measured mean in the paired run, must be given"},
    kStart{Field::kStart, "value",
           "where the learned temperature of each head starts; 1 when absent"};

}  // namespace estimator_options

namespace estimator_table {

using namespace estimator_options;

/// The first is the paper's, and the default. Names are for ever.
inline constexpr std::array kRows = std::to_array<EstimatorRow>({
    {.name = "difference",
     .formula = "abs(v - v_prev) / delta, the paper's",
     .reads = {.v_prev = true},
     .is_scaled = true,
     .options = {&kDelta},
     .estimate = estimators::difference,
     .fused = estimators::difference_fused,
     .next_rows = estimators::difference_rows},
    {.name = "median",
     .formula = "the same, lower median instead of mean",
     .reads = {.v_prev = true},
     .is_scaled = true,
     .options = {&kDelta},
     .estimate = estimators::median},
    {.name = "quotient",
     .formula = "abs(v - v_prev) / (abs(q - q_prev) + attenuation)",
     .reads = {.v_prev = true, .q = true, .q_prev = true},
     .is_scaled = true,
     .options = {&kAttenuation},
     .estimate = estimators::quotient,
     .next_rows = estimators::quotient_rows},
    {.name = "consistent",
     .formula =
         "L1 norm of h(q + t e_i) - h(q - t e_i), over 2 t; h is the attention output, t the "
         "step",
     .reads = {.q = true, .k = true},
     .is_scaled = true,
     .options = {&kPoints, &kStep},
     .estimate = estimators::consistent},
    {.name = "jacobian",
     .formula = "L1 norm of dh/dq_i = scale (sum_j p_j k_ji v_j - kbar_i vbar), every "
                "`query_stride`-th query",
     .reads = {.q = true, .k = true},
     .is_scaled = true,
     .options = {&kPoints, &kQueryStride},
     .estimate = estimators::jacobian},
    {.name = "random",
     .formula = "uniform in [low, 1), fresh in every call, per batch item and head, then scaled",
     .is_scaled = true,
     .draws = true,
     .options = {&kLow},
     .estimate = estimators::random},
    {.name = "random_fixed",
     .formula = "the same from `seed`, head and coordinate alone",
     .is_scaled = true,
     .options = {&kLow, &kSeed},
     .estimate = estimators::random_fixed},
    {.name = "constant",
     .formula = "m = value",
     .options = {&kConstant},
     .estimate = estimators::constant},
    {.name = "matched",
     .formula = "m = value, the mean metric of a paired run",
     .options = {&kMatched},
     .estimate = estimators::constant},
    {.name = "isotropic",
     .formula = "`difference`, each row of m replaced by its mean",
     .reads = {.v_prev = true},
     .is_scaled = true,
     .options = {&kDelta},
     .estimate = estimators::isotropic,
     .next_rows = estimators::isotropic_rows},
    {.name = "temperature",
     .formula = "m = temperature[h], a learned scalar per head",
     .reads = {.temperature = true},
     .options = {&kStart},
     .estimate = estimators::temperature},
});

}  // namespace estimator_table

/// One of them, by name. `estimator->is_scaled` and so on are its row.
class MetricEstimator {
 public:
  /// The paper's.
  constexpr MetricEstimator() = default;
  /// A name in the source: one that the table has not does not compile.
  consteval MetricEstimator(const char* name) : index_(index_of(name)) {  // NOLINT: implicit
    if (index_ == estimator_table::kRows.size()) throw "no such estimator";
  }

  constexpr const EstimatorRow* operator->() const { return &estimator_table::kRows[index_]; }
  friend constexpr bool operator==(MetricEstimator, MetricEstimator) = default;

 private:
  friend MetricEstimator metric_estimator(std::string_view name);
  friend const std::vector<MetricEstimator>& metric_estimators();

  static constexpr size_t index_of(std::string_view name) {
    size_t index = 0;
    while (index < estimator_table::kRows.size() && name != estimator_table::kRows[index].name) {
      ++index;
    }
    return index;
  }

  size_t index_ = 0;
};

/// The estimator of a name. Throws c10::ValueError that suggests the nearest one.
MetricEstimator metric_estimator(std::string_view name);
inline std::string_view to_string(MetricEstimator estimator) { return estimator->name; }

/// All of them, in the order of the table, and their names.
const std::vector<MetricEstimator>& metric_estimators();
std::vector<std::string> metric_estimator_names();

/// `elliptical::_metric_estimators`: for each estimator its name, the tensors that it reads and its
/// options, these two as words with spaces in between, and "streams" where it does.
std::vector<std::string> metric_estimators_op();

}  // namespace elliptical::ops
