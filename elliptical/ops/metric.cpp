// SPDX-License-Identifier: MIT
#include "elliptical/ops/metric.h"

#include <ATen/Functions.h>
#include <ATen/autocast_mode.h>
#include <ATen/core/dispatch/Dispatcher.h>

#include "elliptical/ops/metric_impl.h"

namespace elliptical::ops {
namespace {

/// Every tensor of the inputs through `change`.
template <class Change>
MetricInputs changed(const MetricInputs& inputs, Change change) {
  const auto optional = [&](const OptionalTensor& t) {
    return t ? OptionalTensor(change(*t)) : std::nullopt;
  };
  return {change(inputs.v), optional(inputs.v_prev), optional(inputs.q), optional(inputs.k),
          optional(inputs.q_prev)};
}

at::Tensor compute(const MetricInputs& inputs, const MetricOptions& options) {
  if (options.estimator->fused != nullptr) {
    if (const OptionalTensor m = options.estimator->fused(inputs, options)) return *m;
  }
  // Half precision is computed in float: sums over many tokens need the digits.
  const at::ScalarType type = inputs.v.scalar_type();
  if (type == at::kFloat || type == at::kDouble) {
    return options.estimator->estimate(inputs, options);
  }
  MetricOptions wide = options;
  if (wide.temperature) wide.temperature = wide.temperature->to(at::kFloat);
  const MetricInputs wide_inputs =
      changed(inputs, [](const at::Tensor& t) { return t.to(at::kFloat); });
  return options.estimator->estimate(wide_inputs, wide).to(type);
}

}  // namespace

at::Tensor metric(const at::Tensor& v, const at::Tensor& v_prev, const MetricOptions& options) {
  return metric({.v = v, .v_prev = v_prev}, options);
}

at::Tensor metric(const MetricInputs& inputs, const MetricOptions& options) {
  static const auto op = c10::Dispatcher::singleton()
                             .findSchemaOrThrow("elliptical::metric", "")
                             .typed<MetricSignature>();
  const MetricArgs args{.v = inputs.v,
                        .v_prev = inputs.v_prev,
                        .q = inputs.q,
                        .k = inputs.k,
                        .q_prev = inputs.q_prev,
                        .lengths = options.lengths,
                        .temperature = options.temperature,
                        .estimator = to_string(options.estimator),
                        .scope = to_string(options.scope),
                        .scaling = to_string(options.scaling),
                        .delta = options.delta,
                        .differentiable = options.differentiable,
                        .attenuation = options.attenuation,
                        .step = options.step,
                        .is_causal = options.is_causal,
                        .scale = options.scale,
                        .query_stride = options.query_stride,
                        .low = options.low,
                        .seed = options.seed,
                        .value = options.value,
                        .generator = options.generator};
  return call_flat(args, [](const auto&... flat) { return op.call(flat...); });
}

at::Tensor metric_op(const MetricArgs& args) {
  const MetricInputs inputs{
      .v = args.v, .v_prev = args.v_prev, .q = args.q, .k = args.k, .q_prev = args.q_prev};
  const MetricOptions options{.estimator = metric_estimator(args.estimator),
                              .scope = metric_scope(args.scope),
                              .scaling = metric_scaling(args.scaling),
                              .delta = args.delta,
                              .differentiable = args.differentiable,
                              .attenuation = args.attenuation,
                              .step = args.step,
                              .is_causal = args.is_causal,
                              .scale = args.scale,
                              .query_stride = args.query_stride,
                              .low = args.low,
                              .seed = args.seed,
                              .value = args.value,
                              .lengths = args.lengths,
                              .temperature = args.temperature,
                              .generator = args.generator};
  check_metric(inputs, options);
  const c10::impl::ExcludeDispatchKeyGuard no_autocast(c10::autocast_dispatch_keyset);
  if (args.differentiable) return compute(inputs, options);
  return compute(changed(inputs, [](const at::Tensor& t) { return t.detach(); }), options);
}

}  // namespace elliptical::ops
