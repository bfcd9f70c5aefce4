// SPDX-License-Identifier: MIT
#include "elliptical/nn/attention/metric_source.h"

#include <ATen/CPUGeneratorImpl.h>
#include <torch/torch.h>

#include "elliptical/base/errors.h"
#include "elliptical/nn/attention/metric_statistics.h"
#include "elliptical/ops/prefix_metric.h"

namespace elliptical::nn {
namespace {

using ops::MetricEstimator;
using ops::MetricScope;

/// What goes on in a stream: the running sum, or the row that a random control drew.
struct MetricState : MixerState {
  MetricState(ops::MetricScaling scaling, double delta) : prefix(scaling, delta) {}
  ops::PrefixMetricState prefix;
  at::Tensor row;  ///< (B, H, 1, D)
};

/// Estimators that vary the attention output around some points.
bool varies_output(MetricEstimator estimator) {
  return estimator == MetricEstimator::kConsistent || estimator == MetricEstimator::kJacobian;
}

void check(const MetricSourceOptions& options, const AttentionShape& shape, MetricScope scope) {
  const MetricEstimator estimator = options.metric.estimator;
  if (shape.is_causal && scope == MetricScope::kSequence && reads_tokens(estimator) &&
      !options.metric_lookahead) {
    throw ConfigError(
        "attention: metric.scope must be \"prefix\" in a causal model, got "
        "\"sequence\": every token would see the ones after it through the metric (say "
        "metric_lookahead = true to reproduce the released form)");
  }
  const bool needs_value =
      estimator == MetricEstimator::kConstant || estimator == MetricEstimator::kMatched;
  if (needs_value && !options.metric.value) {
    throw ConfigError("attention: metric.value must be given for metric.estimator = \"" +
                      std::string(to_string(estimator)) +
                      "\", got none (the mean of the metric that it stands in for)");
  }
}

}  // namespace

MetricSource::MetricSource(const MetricSourceOptions& options,
                           const AttentionShape& shape,
                           std::optional<double> logit_scale,
                           torch::nn::Module& owner)
    : options_(options),
      logit_scale_(logit_scale),
      scope_(options.metric.scope.value_or(shape.is_causal ? MetricScope::kPrefix
                                                           : MetricScope::kSequence)),
      is_causal_(shape.is_causal),
      layer_(shape.layer) {
  check(options, shape, scope_);
  if (has_metric() && options.metric.estimator == MetricEstimator::kTemperature) {
    const double start = options.metric.value.value_or(1.0);
    temperature_ = owner.register_parameter("temperature", torch::full({shape.num_heads}, start));
  }
}

std::optional<at::Tensor> MetricSource::metric(const HeadMixer::Heads& heads,
                                               const Pass& pass,
                                               std::unique_ptr<MixerState>* state) const {
  if (!has_metric()) return std::nullopt;
  const at::Tensor m = state != nullptr ? of_stream(heads, pass, *state) : of_sequence(heads, pass);
  if (pass.metric_statistics != nullptr) pass.metric_statistics->add(pass.layer, m);
  return m;
}

bool MetricSource::has_one_row() const {
  return !reads_tokens(options_.metric.estimator) || scope_ == MetricScope::kSequence;
}

at::Tensor MetricSource::of_sequence(const HeadMixer::Heads& heads, const Pass& pass) const {
  const MetricFields& from = options_.metric;
  // A control that looks at no token stays what it is.
  const MetricEstimator estimator = reads_tokens(from.estimator)
                                        ? pass.metric_estimator.value_or(from.estimator)
                                        : from.estimator;
  ops::MetricOptions call{
      .estimator = estimator,
      .scope = pass.metric_scope.value_or(scope_),
      .scaling = from.scaling,
      .delta = from.delta,
      .differentiable = pass.gradient_through_metric.value_or(options_.gradient_through_metric),
      .attenuation = from.attenuation,
      .step = from.step,
      .is_causal = pass.is_causal,
      .scale = logit_scale_,
      .query_stride = from.query_stride,
      .low = estimator == MetricEstimator::kRandom ? pass.metric_low.value_or(from.low) : from.low,
      .seed = from.seed,
      .value = from.value.value_or(1.0),
      .lengths = pass.key_lengths};
  // One row serves all tokens of a control that looks at none.
  if (!reads_tokens(estimator)) call.scope = MetricScope::kSequence;
  if (temperature_.defined()) call.temperature = temperature_;
  if (estimator == MetricEstimator::kRandom) {
    call.generator = at::detail::createCPUGenerator(pass.seed("metric"));
  }
  const bool at_keys = varies_output(estimator) && from.points == MetricPoints::kKeys;
  ops::MetricInputs inputs{.v = heads.v_new, .q = at_keys ? heads.k : heads.q, .k = heads.k};
  if (reads_tokens(estimator)) {
    inputs.v_prev = pass.previous_v;
    inputs.q_prev = pass.previous_q;
  }
  return ops::metric(inputs, call);
}

at::Tensor MetricSource::of_stream(const HeadMixer::Heads& heads,
                                   const Pass& pass,
                                   std::unique_ptr<MixerState>& state) const {
  const MetricFields& from = options_.metric;
  if (!state) state = std::make_unique<MetricState>(from.scaling, from.delta);
  auto& running = dynamic_cast<MetricState&>(*state);
  switch (from.estimator) {
    case MetricEstimator::kIsotropic: {
      const at::Tensor rows = running.prefix.update(heads.v_new, pass.previous_v);
      return rows.mean(-1, /*keepdim=*/true).expand_as(rows);
    }
    case MetricEstimator::kQuotient: {
      const at::Tensor change = (heads.v_new - pass.previous_v).abs() /
                                ((heads.q - pass.previous_q).abs() + from.attenuation);
      return running.prefix.update(change, at::zeros_like(change));
    }
    case MetricEstimator::kDifference:
      return running.prefix.update(heads.v_new, pass.previous_v);
    default:  // constant over the sequence: the first piece's row
      if (!running.row.defined()) running.row = of_sequence(heads, pass);
      return running.row;
  }
}

std::optional<std::string> MetricSource::why_no_streaming() const {
  const MetricEstimator estimator = options_.metric.estimator;
  if (!has_metric() || !reads_tokens(estimator)) return std::nullopt;
  if (scope_ == MetricScope::kSequence) {
    return "metric.scope = \"sequence\" reads the whole sequence, so that each new token changes "
           "the "
           "metric of all tokens before it (train with metric.scope = \"prefix\")";
  }
  switch (estimator) {
    case MetricEstimator::kMedian:
    case MetricEstimator::kConsistent:
    case MetricEstimator::kJacobian:
      return "metric.estimator = \"" + std::string(to_string(estimator)) +
             "\" has no running sum to go on from (difference, quotient, isotropic and the "
             "controls stream)";
    default:
      return std::nullopt;
  }
}

std::map<std::string, LabelValue> MetricSource::labels() const {
  const MetricFields& metric = options_.metric;
  const bool reads = reads_tokens(metric.estimator);
  std::map<std::string, LabelValue> labels{
      {"leaks_future", is_causal_ && reads && scope_ == MetricScope::kSequence},
      {"metric_estimator", std::string(to_string(metric.estimator))},
      {"metric_gradient", std::string(options_.gradient_through_metric ? "through" : "detached")},
      {"metric_scaling", std::string(ops::to_string(metric.scaling))},
      {"metric_scope", std::string(to_string(scope_))}};
  if (varies_output(metric.estimator)) labels["metric_points"] = to_string(metric.points);
  return labels;
}

}  // namespace elliptical::nn
