// SPDX-License-Identifier: MIT
#include "elliptical/ops/metric.h"

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <ATen/autocast_mode.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/custom_function.h>

#include "elliptical/ops/fused_layer_impl.h"
#include "elliptical/ops/metric_impl.h"
#include "elliptical/ops/transforms_impl.h"

namespace elliptical::ops {
namespace {

using OptionalTensor = std::optional<at::Tensor>;

/// Every tensor of the inputs through `change`.
template <class Change>
MetricInputs changed(const MetricInputs& inputs, Change change) {
  const auto optional = [&](const OptionalTensor& t) {
    return t ? OptionalTensor(change(*t)) : std::nullopt;
  };
  return {change(inputs.v), optional(inputs.v_prev), optional(inputs.q), optional(inputs.k),
          optional(inputs.q_prev)};
}

bool needs_gradient(const MetricInputs& inputs) {
  return at::GradMode::is_enabled() &&
         (inputs.v.requires_grad() || (inputs.v_prev && inputs.v_prev->requires_grad()));
}

/// The fused kernel takes the paper's estimator in float on the CPU, without a gradient.
bool kernel_applies(const MetricInputs& inputs, const MetricOptions& options) {
  return options.estimator == MetricEstimator::kDifference && inputs.v.device().is_cpu() &&
         inputs.v.scalar_type() == at::kFloat && !needs_gradient(inputs) &&
         kernels_are_differentiable();
}

/// s = mean_n |v - v_prev| / delta, (B, H, 1, D), with a gradient: what an attack through the
/// metric spends its time on, were it composed of absolute values and means.
class MeanChange : public torch::autograd::Function<MeanChange> {
 public:
  static at::Tensor forward(torch::autograd::AutogradContext* ctx,
                            const at::Tensor& v,
                            const at::Tensor& v_prev,
                            double delta) {
    const at::AutoDispatchBelowADInplaceOrView guard;
    ctx->save_for_backward({v, v_prev});
    ctx->saved_data["delta"] = delta;
    return call_metric_difference(v, v_prev, {}, /*prefix=*/false, to_string(MetricScaling::kNone),
                                  delta);
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* ctx,
                                                 const torch::autograd::variable_list& above) {
    const torch::autograd::variable_list saved = ctx->get_saved_variables();
    const at::Tensor &v = saved[0], &v_prev = saved[1];
    const double count = static_cast<double>(v.size(2)) * ctx->saved_data["delta"].toDouble();
    const at::Tensor dv = (v - v_prev).sign_().mul_(above[0] / count);
    return {dv, ctx->needs_input_grad(1) ? -dv : at::Tensor(), {}};
  }
};

/// The same with a gradient, over a whole sequence.
bool mean_change_applies(const MetricInputs& inputs, const MetricOptions& options) {
  return options.estimator == MetricEstimator::kDifference &&
         options.scope == MetricScope::kSequence && !options.lengths &&
         fused_layer_applies(inputs.v) && inputs.v_prev->scalar_type() == at::kFloat &&
         inputs.v.sym_size(2) > 0;
}

at::Tensor compute(const MetricInputs& inputs, const MetricOptions& options) {
  if (kernel_applies(inputs, options)) {
    return call_metric_difference(inputs.v, *inputs.v_prev, options.lengths,
                                  options.scope == MetricScope::kPrefix, to_string(options.scaling),
                                  options.delta);
  }
  if (mean_change_applies(inputs, options)) {
    return scale_rows(MeanChange::apply(inputs.v, *inputs.v_prev, options.delta), options.scaling);
  }
  // Half precision is computed in float: sums over many tokens need the digits.
  const at::ScalarType type = inputs.v.scalar_type();
  if (type == at::kFloat || type == at::kDouble) return metric_composite(inputs, options);
  MetricOptions wide = options;
  if (wide.temperature) wide.temperature = wide.temperature->to(at::kFloat);
  return metric_composite(changed(inputs, [](const at::Tensor& t) { return t.to(at::kFloat); }),
                          wide)
      .to(type);
}

}  // namespace

at::Tensor metric(const at::Tensor& v, const at::Tensor& v_prev, const MetricOptions& options) {
  return metric({.v = v, .v_prev = v_prev}, options);
}

at::Tensor metric(const MetricInputs& inputs, const MetricOptions& options) {
  static const auto op = c10::Dispatcher::singleton()
                             .findSchemaOrThrow("elliptical::metric", "")
                             .typed<decltype(metric_op)>();
  return op.call(inputs.v, inputs.v_prev, inputs.q, inputs.k, inputs.q_prev, options.lengths,
                 options.temperature, to_string(options.estimator), to_string(options.scope),
                 to_string(options.scaling), options.delta, options.differentiable,
                 options.attenuation, options.step, options.is_causal, options.scale,
                 options.query_stride, options.low, options.seed, options.value, options.generator);
}

at::Tensor metric_op(const at::Tensor& v,
                     const OptionalTensor& v_prev,
                     const OptionalTensor& q,
                     const OptionalTensor& k,
                     const OptionalTensor& q_prev,
                     const OptionalTensor& lengths,
                     const OptionalTensor& temperature,
                     std::string_view estimator,
                     std::string_view scope,
                     std::string_view scaling,
                     double delta,
                     bool differentiable,
                     double attenuation,
                     std::optional<double> step,
                     bool is_causal,
                     std::optional<double> scale,
                     int64_t query_stride,
                     double low,
                     int64_t seed,
                     double value,
                     std::optional<at::Generator> generator) {
  const MetricInputs inputs{v, v_prev, q, k, q_prev};
  const MetricOptions options{.estimator = metric_estimator(estimator),
                              .scope = metric_scope(scope),
                              .scaling = metric_scaling(scaling),
                              .delta = delta,
                              .differentiable = differentiable,
                              .attenuation = attenuation,
                              .step = step,
                              .is_causal = is_causal,
                              .scale = scale,
                              .query_stride = query_stride,
                              .low = low,
                              .seed = seed,
                              .value = value,
                              .lengths = lengths,
                              .temperature = temperature,
                              .generator = std::move(generator)};
  check_metric(inputs, options);
  const c10::impl::ExcludeDispatchKeyGuard no_autocast(c10::autocast_dispatch_keyset);
  if (differentiable) return compute(inputs, options);
  return compute(changed(inputs, [](const at::Tensor& t) { return t.detach(); }), options);
}

}  // namespace elliptical::ops
