// SPDX-License-Identifier: MIT
#include "elliptical/nn/attention/metric_source.h"

#include "elliptical/base/option_limits.h"

namespace elliptical::nn {
namespace {

using ops::MetricEstimator;
using ops::MetricScope;

void add_points(FieldList& fields, MetricPoints& points) {
  fields.add_enum(
      "points", points, {"queries", "keys"},
      [](const std::string& name) {
        return name == "queries" ? MetricPoints::kQueries : MetricPoints::kKeys;
      },
      "where the attention output is varied: queries, as in the public code, or keys, as in the "
      "paper");
}

bool scales_rows(MetricEstimator estimator) {
  return reads_tokens(estimator) || estimator == MetricEstimator::kRandom ||
         estimator == MetricEstimator::kRandomFixed;
}

}  // namespace

std::string to_string(MetricPoints points) {
  return points == MetricPoints::kQueries ? "queries" : "keys";
}

bool reads_tokens(MetricEstimator estimator) {
  switch (estimator) {
    case MetricEstimator::kRandom:
    case MetricEstimator::kRandomFixed:
    case MetricEstimator::kConstant:
    case MetricEstimator::kMatched:
    case MetricEstimator::kTemperature:
      return false;
    default:
      return true;
  }
}

void add_scope(FieldList& fields, std::optional<ops::MetricScope>& scope, const char* help) {
  fields.add_choice(
      "scope",
      {.names = {"auto", "prefix", "sequence"},
       .get = [&scope] { return scope ? std::string(to_string(*scope)) : std::string("auto"); },
       .set =
           [&scope](const std::string& name) {
             scope = name == "auto" ? std::nullopt : std::optional(ops::metric_scope(name));
           }},
      help);
}

void MetricFields::visit(FieldList& fields) {
  fields.add_choice(
      "estimator",
      {.names = ops::metric_estimator_names(),
       .get = [this] { return std::string(to_string(estimator)); },
       .set = [this](const std::string& name) { estimator = ops::metric_estimator(name); },
       .selects_fields = true},
      "what the metric is read off: an estimator or a control");
  if (reads_tokens(estimator)) {
    add_scope(fields, scope,
              "tokens that a row of the metric sees; auto: prefix in causal models, else sequence");
  }
  if (scales_rows(estimator)) {
    fields.add_choice(
        "scaling",
        {.names = {"max", "mean", "none"},
         .get = [this] { return std::string(ops::to_string(scaling)); },
         .set = [this](const std::string& name) { scaling = ops::metric_scaling(name); }},
        "what each row of the metric is divided by");
  }
  switch (estimator) {
    case MetricEstimator::kDifference:
    case MetricEstimator::kMedian:
    case MetricEstimator::kIsotropic:
      fields.add("delta", delta, "divides the change of the values; cancels unless scaling = none",
                 above(0));
      break;
    case MetricEstimator::kQuotient:
      fields.add("attenuation", attenuation, "added to the change of the queries", above(0));
      break;
    case MetricEstimator::kConsistent:
      add_points(fields, points);
      fields.add("step", step, "of the central difference; 0.5 / sqrt(D) when absent", above(0));
      break;
    case MetricEstimator::kJacobian:
      add_points(fields, points);
      fields.add("query_stride", query_stride, "every how many queries it is evaluated",
                 between(1, kMostTokens));
      break;
    case MetricEstimator::kRandom:
      fields.add("low", low, "numbers are uniform in [low, 1)", below(0, 1));
      break;
    case MetricEstimator::kRandomFixed:
      fields.add("low", low, "numbers are uniform in [low, 1)", below(0, 1));
      fields.add("seed", seed, "chooses the numbers", any_seed(-0x1p63));
      break;
    case MetricEstimator::kConstant:
      fields.add("value", value, "of the metric, must be given", at_least(0));
      break;
    case MetricEstimator::kMatched:
      fields.add("value", value,
                 "of the metric: its measured mean in the paired run, must be given", at_least(0));
      break;
    case MetricEstimator::kTemperature:
      fields.add("value", value, "where the learned temperature of each head starts; 1 when absent",
                 above(0));
      break;
  }
}

void MetricSourceOptions::visit_metric(FieldList& fields) {
  fields.add_group("metric", metric);
  fields.add_choice(
      "metric_gradient",
      {.names = {"detached", "through"},
       .get = [this] { return std::string(gradient_through_metric ? "through" : "detached"); },
       .set = [this](const std::string& name) { gradient_through_metric = name == "through"; }},
      "whether gradients pass through the metric");
  fields.add("metric_lookahead", metric_lookahead,
             "allows metric.scope = sequence in a causal model, where it sees the future");
}

void DistanceOptions::visit_distance(FieldList& fields) {
  fields.add_choice(
      "distance",
      {.names = {"euclidean", "elliptical"},
       .get = [this] { return is_elliptical ? "elliptical" : "euclidean"; },
       .set = [this](const std::string& name) { is_elliptical = name == "elliptical"; },
       .selects_fields = true},
      "what distances between queries and keys are measured with; elliptical: with a metric");
  if (is_elliptical) visit_metric(fields);
}

}  // namespace elliptical::nn
