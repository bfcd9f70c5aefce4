// SPDX-License-Identifier: MIT
#include "elliptical/ops/prefix_metric.h"

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <c10/util/Exception.h>

#include "elliptical/ops/metric_impl.h"
#include "elliptical/ops/shape_text_impl.h"

namespace elliptical::ops {

at::Tensor PrefixMetricState::update(const at::Tensor& v, const at::Tensor& v_prev) {
  const std::optional<at::Tensor> before =
      sum_.defined() ? std::optional(sum_) : std::optional<at::Tensor>();
  auto [rows, sum] = prefix_metric_op(v, v_prev, before, count_, to_string(scaling_), delta_);
  sum_ = sum;
  count_ += v.size(2);
  return rows;
}

std::tuple<at::Tensor, at::Tensor> prefix_metric_op(const at::Tensor& v,
                                                    const at::Tensor& v_prev,
                                                    const std::optional<at::Tensor>& sum,
                                                    int64_t count,
                                                    std::string_view scaling,
                                                    double delta) {
  const MetricScaling chosen = metric_scaling(scaling);
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
  return {scale_rows(sums / counts, chosen).to(v.scalar_type()), next};
}

}  // namespace elliptical::ops
