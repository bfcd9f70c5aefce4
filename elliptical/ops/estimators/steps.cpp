// SPDX-License-Identifier: MIT
#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>

#include "elliptical/ops/estimators/steps_impl.h"
#include "elliptical/ops/masks_impl.h"

namespace elliptical::ops::estimators {

at::Tensor real_tokens(const MetricInputs& inputs, const MetricOptions& options) {
  const c10::SymInt N = inputs.v.sym_size(2);
  if (options.lengths) {
    return valid_tokens(*options.lengths, N, "metric: lengths", "N").unsqueeze(1).unsqueeze(-1);
  }
  return at::ones_symint({1, 1, N, 1}, inputs.v.options().dtype(at::kBool));
}

at::Tensor change(const at::Tensor& a, const at::Tensor& b, const at::Tensor& real) {
  return at::where(real, a - b, 0.0).abs();
}

TokenValues value_changes(const MetricInputs& inputs, const MetricOptions& options) {
  const at::Tensor real = real_tokens(inputs, options);
  return {change(inputs.v, *inputs.v_prev, real) / options.delta, real};
}

bool is_causal(const MetricOptions& options) {
  return options.is_causal || options.scope == MetricScope::kPrefix;
}

at::Tensor mean_over_tokens(const TokenValues& values, MetricScope scope) {
  const at::Tensor ones = values.counted.to(values.x.scalar_type());
  if (scope == MetricScope::kPrefix) return values.x.cumsum(2) / ones.cumsum(2).clamp_min(1);
  return values.x.sum(2, /*keepdim=*/true) / ones.sum(2, /*keepdim=*/true).clamp_min(1);
}

at::Tensor scale_rows(const at::Tensor& s, MetricScaling scaling) {
  if (s.sym_size(-1) == 0) return s;
  const at::Tensor max = s.amax(-1, /*keepdim=*/true);
  const at::Tensor unchanged = max.eq(0);
  at::Tensor m = s;
  if (scaling != MetricScaling::kNone) {
    const at::Tensor divisor = scaling == MetricScaling::kMax ? max : s.mean(-1, /*keepdim=*/true);
    m = s / at::where(unchanged, 1.0, divisor);
  }
  return at::where(unchanged, 1.0, m);
}

at::Tensor scaled_mean(const TokenValues& values, const MetricOptions& options) {
  return scale_rows(mean_over_tokens(values, options.scope), options.scaling);
}

at::Tensor repeat_rows(const at::Tensor& row,
                       const MetricInputs& inputs,
                       const MetricOptions& options) {
  const at::Tensor& v = inputs.v;
  const c10::SymInt rows = options.scope == MetricScope::kPrefix ? v.sym_size(2) : c10::SymInt(1);
  return row.expand_symint({v.sym_size(0), v.sym_size(1), rows, v.sym_size(3)});
}

}  // namespace elliptical::ops::estimators
