// SPDX-License-Identifier: MIT
#include "elliptical/ops/prefix_metric.h"

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <c10/util/Exception.h>

#include "elliptical/ops/estimators/steps_impl.h"
#include "elliptical/ops/metric_impl.h"
#include "elliptical/ops/shape_text_impl.h"

namespace elliptical::ops {
namespace {

/// (rows, next sum) from the sum so far, if any, over `count` tokens.
std::tuple<at::Tensor, at::Tensor> next_rows(const at::Tensor& v,
                                             const at::Tensor& v_prev,
                                             const std::optional<at::Tensor>& sum,
                                             int64_t count,
                                             MetricScaling scaling,
                                             double delta) {
  check_metric({.v = v, .v_prev = v_prev}, {.scope = MetricScope::kPrefix, .delta = delta});
  TORCH_CHECK_VALUE(!sum || (sum->dim() == 4 && sum->sym_size(0) == v.sym_size(0) &&
                             sum->sym_size(1) == v.sym_size(1) && sum->sym_size(2) == 1 &&
                             sum->sym_size(3) == v.sym_size(3)),
                    "metric: v must continue the stream of shape ",
                    sum ? shape_text(*sum) : std::string(), ", got ", shape_text(v));
  // Half precision sums in float, float in double: a stream may be long.
  const at::ScalarType wide =
      v.scalar_type() == at::kFloat || v.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
  at::Tensor sums = (v.detach().to(wide) - v_prev.detach().to(wide)).abs().cumsum(2);
  if (sum) sums = sums + *sum;
  const c10::SymInt T = v.sym_size(2);
  const at::Tensor counts =
      at::arange(c10::Scalar(T), sums.options()).add(count + 1).reshape({-1, 1}) * delta;
  const at::Tensor next =
      T == 0 ? sum.value_or(at::zeros_symint({v.sym_size(0), v.sym_size(1), 1, v.sym_size(3)},
                                             sums.options()))
             : sums.slice_symint(2, T - 1, T).clone();
  return {estimators::scale_rows(sums / counts, scaling).to(v.scalar_type()), next};
}

}  // namespace

at::Tensor PrefixMetricState::update(const at::Tensor& v, const at::Tensor& v_prev) {
  const std::optional<at::Tensor> before =
      sum_.defined() ? std::optional(sum_) : std::optional<at::Tensor>();
  auto [rows, sum] = next_rows(v, v_prev, before, count_, scaling_, delta_);
  sum_ = sum;
  count_ += v.size(2);
  return rows;
}

at::Tensor next_metric_rows(const MetricInputs& inputs,
                            const MetricOptions& options,
                            PrefixMetricState& state) {
  TORCH_CHECK_VALUE(options.estimator->next_rows != nullptr,
                    "metric: estimator must have a running sum to stream, got ",
                    to_string(options.estimator));
  return options.estimator->next_rows(inputs, options, state);
}

std::tuple<at::Tensor, at::Tensor> prefix_metric_op(const at::Tensor& v,
                                                    const at::Tensor& v_prev,
                                                    const std::optional<at::Tensor>& sum,
                                                    int64_t count,
                                                    std::string_view scaling,
                                                    double delta) {
  return next_rows(v, v_prev, sum, count, metric_scaling(scaling), delta);
}

}  // namespace elliptical::ops
