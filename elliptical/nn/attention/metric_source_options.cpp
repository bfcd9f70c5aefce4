// SPDX-License-Identifier: MIT
#include "elliptical/nn/attention/metric_source.h"

#include "elliptical/base/option_limits.h"

namespace elliptical::nn {
std::string to_string(MetricPoints points) {
  return points == MetricPoints::kQueries ? "queries" : "keys";
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
  if (estimator->reads_tokens()) {
    add_scope(fields, scope,
              "tokens that a row of the metric sees; auto: prefix in causal models, else sequence");
  }
  if (estimator->is_scaled) {
    fields.add_choice(
        "scaling",
        {.names = {"max", "mean", "none"},
         .get = [this] { return std::string(ops::to_string(scaling)); },
         .set = [this](const std::string& name) { scaling = ops::metric_scaling(name); }},
        "what each row of the metric is divided by");
  }
  for (const ops::EstimatorOption* option : estimator->options) {
    if (option != nullptr) add_option(fields, *option);
  }
}

void MetricFields::add_option(FieldList& fields, const ops::EstimatorOption& option) {
  using Field = ops::EstimatorOption::Field;
  switch (option.field) {
    case Field::kDelta:
      return fields.add(option.name, delta, option.help, above(0));
    case Field::kAttenuation:
      return fields.add(option.name, attenuation, option.help, above(0));
    case Field::kPoints:
      return fields.add_enum(
          option.name, points, {"queries", "keys"},
          [](const std::string& name) {
            return name == "queries" ? MetricPoints::kQueries : MetricPoints::kKeys;
          },
          option.help);
    case Field::kStep:
      return fields.add(option.name, step, option.help, above(0));
    case Field::kQueryStride:
      return fields.add(option.name, query_stride, option.help, between(1, kMostTokens));
    case Field::kLow:
      return fields.add(option.name, low, option.help, below(0, 1));
    case Field::kSeed:
      return fields.add(option.name, seed, option.help, any_seed(-0x1p63));
    case Field::kValue:
      return fields.add(option.name, value, option.help, at_least(0));
    case Field::kStart:
      return fields.add(option.name, value, option.help, above(0));
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
