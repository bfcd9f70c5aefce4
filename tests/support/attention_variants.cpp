// SPDX-License-Identifier: MIT
#include "tests/support/attention_variants.h"

#include <stdexcept>

#include "elliptical/base/config.h"
#include "elliptical/base/name_table.h"
#include "elliptical/ops/metric_estimators.h"

namespace elliptical::support {

ChosenOptions AttentionVariant::options(const std::vector<std::string>& more) const {
  ChosenOptions chosen(choices(), attention);
  std::vector<std::string> all = assignments;
  all.insert(all.end(), more.begin(), more.end());
  apply_overrides(all, fields_of(chosen));
  return chosen;
}

const nn::AttentionEntry& AttentionVariant::entry() const {
  return require_entry<std::logic_error>(table(), attention, "attention");
}

nn::AttentionAbilities AttentionVariant::can() const {
  nn::AttentionAbilities can = entry().can;
  if (looks_ahead) {
    can.causal = false;
    can.looks_ahead = true;
  }
  can.streams = can.streams && can.causal && keeps_streams;
  return can;
}

namespace {

/// Elliptical attention with each estimator of the table, named like it.
std::vector<AttentionVariant> estimator_variants() {
  using Field = ops::EstimatorOption::Field;
  std::vector<AttentionVariant> variants;
  for (const ops::MetricEstimator estimator : ops::metric_estimators()) {
    AttentionVariant variant{
        .name = estimator->name, .attention = "elliptical", .keeps_streams = estimator->streams()};
    std::string chosen = "metric.estimator=";  // by +=: gcc 12 warns wrongly of a sum in a list
    chosen += estimator->name;
    variant.assignments.push_back(chosen);
    if (estimator->has(Field::kQueryStride))
      variant.assignments.emplace_back("metric.query_stride=2");
    if (estimator->has(Field::kValue)) variant.assignments.emplace_back("metric.value=0.5");
    if (estimator->has(Field::kStart)) variant.assignments.emplace_back("metric.value=0.63");
    variants.push_back(variant);
  }
  return variants;
}

}  // namespace

std::vector<AttentionVariant> attention_variants() {
  std::vector<AttentionVariant> variants{
      {.name = "softmax", .attention = "softmax"},
      {.name = "softmax_unscaled", .attention = "softmax", .assignments = {"scale_logits=false"}},
      {.name = "difference_mean",
       .attention = "elliptical",
       .assignments = {"metric.scaling=mean"}},
      {.name = "difference_none",
       .attention = "elliptical",
       .assignments = {"metric.scaling=none", "metric.delta=0.5"}},
      {.name = "difference_unscaled",
       .attention = "elliptical",
       .assignments = {"scale_logits=false"}},
      {.name = "kde", .attention = "kde"},
      {.name = "kde_wide", .attention = "kde", .assignments = {"kernel_scale=0.25"}},
      {.name = "kde_elliptical", .attention = "kde", .assignments = {"distance=elliptical"}},
      {.name = "rkde_huber", .attention = "rkde", .sums_to_one = false},
      {.name = "rkde_hampel",
       .attention = "rkde",
       .assignments = {"loss=hampel", "threshold=0.3", "num_iterations=2"},
       .sums_to_one = false},
      {.name = "rkde_elliptical",
       .attention = "rkde",
       .assignments = {"distance=elliptical"},
       .sums_to_one = false},
      {.name = "rkde_sequence",
       .attention = "rkde",
       .assignments = {"scope=sequence", "lookahead=true"},
       .looks_ahead = true,
       .sums_to_one = false},
      {.name = "rvt", .attention = "rvt", .assignments = {"window=64"}},
      {.name = "rvt_raw_elliptical",
       .attention = "rvt",
       .assignments = {"window=64", "normalize_keys=false", "distance=elliptical"}},
      {.name = "spkde",
       .attention = "spkde",
       .assignments = {"lookahead=true", "outliers=0.3"},
       .exact_gradient = {"outliers=0"},
       .sums_to_one = false},
      {.name = "spkde_elliptical",
       .attention = "spkde",
       .assignments = {"lookahead=true", "distance=elliptical"},
       .exact_gradient = {"outliers=0"},
       .sums_to_one = false},
      {.name = "spkde_per_head",
       .attention = "spkde",
       .assignments = {"lookahead=true", "weights=per-head"},
       .exact_gradient = {"outliers=0"},
       .sums_to_one = false},
      {.name = "released_lm",
       .attention = "elliptical",
       .assignments = {"preset=released-lm", "metric_lookahead=true"},
       .looks_ahead = true},
      {.name = "fourier", .attention = "fourier", .damped = true},
      {.name = "fourier_vector",
       .attention = "fourier",
       .assignments = {"radius=1", "radius_per_coordinate=true", "epsilon=0"}},
      {.name = "fourier_elliptical",
       .attention = "fourier",
       .assignments = {"distance=elliptical", "metric.estimator=temperature", "metric.value=0.6"},
       .damped = true},
      {.name = "mgk",
       .attention = "mgk",
       .assignments = {"window=64"},
       .damped = true,
       .own_parameters = {"second_keys.weight"}},
      {.name = "mgk_shifted",
       .attention = "mgk",
       .assignments = {"window=64", "keys=shifted", "bandwidths=[0.5,0.5]", "epsilon=0"}},
      {.name = "mgk_hard", .attention = "mgk", .assignments = {"mixture=hard", "keys=shifted"}},
      {.name = "mgk_elliptical",
       .attention = "mgk",
       .assignments = {"window=64", "distance=elliptical"},
       .damped = true,
       .own_parameters = {"second_keys.weight"}},
      {.name = "mgk_elliptical_one_row",
       .attention = "mgk",
       .assignments = {"window=64", "distance=elliptical", "metric.estimator=temperature",
                       "metric.value=0.6"},
       .damped = true,
       .own_parameters = {"second_keys.weight"}},
      {.name = "mom", .attention = "mom", .assignments = {"num_blocks=2"}},
      {.name = "mom_five", .attention = "mom"},
      {.name = "mom_overlapping",
       .attention = "mom",
       .assignments = {"num_blocks=3", "blocks=overlapping", "left_out=0.3"}},
      {.name = "mom_global",
       .attention = "mom",
       .assignments = {"num_blocks=2", "selection=global", "lookahead=true"},
       .looks_ahead = true,
       .leaks_rarely = true},
      {.name = "mom_elliptical",
       .attention = "mom",
       .assignments = {"num_blocks=2", "distance=elliptical"}},
      {.name = "performer", .attention = "performer", .exact_gradient = {"epsilon=0"}},
      {.name = "performer_gaussian",
       .attention = "performer",
       .assignments = {"projection=gaussian", "hyperbolic=false", "num_features=5", "epsilon=0"}},
      {.name = "performer_released_lm",
       .attention = "performer",
       .assignments = {"preset=released-lm"},
       .damped = true},
      {.name = "performer_released_lra",
       .attention = "performer",
       .assignments = {"preset=released-lra"},
       .exact_gradient = {"epsilon=0"}},
      {.name = "performer_elliptical",
       .attention = "performer",
       .assignments = {"distance=elliptical", "metric.estimator=temperature", "metric.value=0.6"},
       .exact_gradient = {"epsilon=0"}},
  };
  const std::vector<AttentionVariant> of_estimators = estimator_variants();
  variants.insert(variants.end(), of_estimators.begin(), of_estimators.end());
  return variants;
}

std::vector<AttentionVariant> causal_attention_variants() {
  std::vector<AttentionVariant> variants = attention_variants();
  std::erase_if(variants, [](const auto& variant) { return !variant.can().may_be_causal(); });
  return variants;
}

}  // namespace elliptical::support
