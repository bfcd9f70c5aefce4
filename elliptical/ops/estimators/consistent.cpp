// SPDX-License-Identifier: MIT
//
// x = |h(q + t e_i) - h(q - t e_i)|_1 / (2 t), h the attention output, t the step: central
// differences, all queries shifted together. Two calls of attention for each coordinate.
#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>

#include <cmath>

#include "elliptical/ops/attention.h"
#include "elliptical/ops/estimators/steps_impl.h"

namespace elliptical::ops::estimators {
namespace {

at::Tensor output_differences(const MetricInputs& inputs, const MetricOptions& options) {
  const at::Tensor& q = *inputs.q;
  const int64_t D = q.sym_size(3).guard_int(__FILE__, __LINE__);
  const double step = options.step.value_or(0.5 / std::sqrt(static_cast<double>(D)));
  const AttentionOptions attention_options{
      .is_causal = is_causal(options), .scale = options.scale, .key_lengths = options.lengths};
  const auto output = [&](const at::Tensor& shifted) {
    return attention(shifted, *inputs.k, inputs.v, {}, attention_options);
  };
  const at::Tensor unit = at::eye(D, q.options()) * step;
  std::vector<at::Tensor> columns;
  for (int64_t i = 0; i < D; ++i) {
    const at::Tensor shift = unit.select(0, i);
    columns.push_back((output(q + shift) - output(q - shift)).abs().sum(-1) / (2 * step));
  }
  return D == 0 ? at::zeros_like(q) : at::stack(columns, -1);
}

}  // namespace

at::Tensor consistent(const MetricInputs& inputs, const MetricOptions& options) {
  const at::Tensor real = real_tokens(inputs, options);
  return scaled_mean({output_differences(inputs, options), real}, options);
}

}  // namespace elliptical::ops::estimators
