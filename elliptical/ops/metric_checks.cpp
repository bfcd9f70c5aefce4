// SPDX-License-Identifier: MIT
//
// Every check of the metric op's arguments:
// `metric: <argument> must <what must hold>, got <what was given>`.
#include <ATen/Functions.h>
#include <c10/util/Exception.h>

#include <cmath>

#include "elliptical/ops/metric_impl.h"
#include "elliptical/ops/shape_text_impl.h"

namespace elliptical::ops {
namespace {

/// The tensor, which this estimator needs, of v's dtype and device.
const at::Tensor& needed(const std::optional<at::Tensor>& tensor,
                         const char* name,
                         const MetricInputs& inputs,
                         const MetricOptions& options) {
  TORCH_CHECK_VALUE(tensor.has_value(), "metric: ", name, " must be given for the estimator ",
                    to_string(options.estimator), ", got none");
  TORCH_CHECK_TYPE(tensor->scalar_type() == inputs.v.scalar_type(), "metric: ", name,
                   " must have v's dtype ", inputs.v.scalar_type(), ", got ",
                   tensor->scalar_type());
  TORCH_CHECK_VALUE(tensor->device() == inputs.v.device(), "metric: ", name,
                    " must be on v's device ", inputs.v.device(), ", got ", tensor->device());
  return *tensor;
}

void check_like_v(const std::optional<at::Tensor>& optional,
                  const char* name,
                  const MetricInputs& inputs,
                  const MetricOptions& options) {
  const at::Tensor& tensor = needed(optional, name, inputs, options);
  TORCH_CHECK_VALUE(tensor.sym_sizes() == inputs.v.sym_sizes(), "metric: ", name,
                    " must have v's shape ", shape_text(inputs.v), ", got ", shape_text(tensor));
}

/// q (B, H, N, D) and k (B, Hk, N, D) of the attention whose values are v (B, Hk, N, Dv).
void check_attention_inputs(const MetricInputs& inputs, const MetricOptions& options) {
  const at::Tensor& q = needed(inputs.q, "q", inputs, options);
  const at::Tensor& k = needed(inputs.k, "k", inputs, options);
  const c10::SymInt B = inputs.v.sym_size(0), Hk = inputs.v.sym_size(1), N = inputs.v.sym_size(2);
  TORCH_CHECK_VALUE(q.dim() == 4 && q.sym_size(0) == B && q.sym_size(2) == N &&
                        (Hk == 0 ? q.sym_size(1) == 0 : q.sym_size(1) % Hk == 0),
                    "metric: q must be (B, H, N, D) = (", B, ", a multiple of ", Hk, ", ", N,
                    ", D), got ", shape_text(q));
  TORCH_CHECK_VALUE(k.dim() == 4 && k.sym_size(0) == B && k.sym_size(1) == Hk &&
                        k.sym_size(2) == N && k.sym_size(3) == q.sym_size(3),
                    "metric: k must be (B, Hk, N, D) = (", B, ", ", Hk, ", ", N, ", ",
                    q.sym_size(3), "), got ", shape_text(k));
}

void check_lengths_tensor(const at::Tensor& lengths, const at::Tensor& v) {
  TORCH_CHECK_TYPE(lengths.scalar_type() == at::kLong, "metric: lengths must have dtype Long, got ",
                   lengths.scalar_type());
  TORCH_CHECK_VALUE(lengths.device() == v.device(), "metric: lengths must be on v's device ",
                    v.device(), ", got ", lengths.device());
  TORCH_CHECK_VALUE(lengths.dim() == 1 && lengths.sym_size(0) == v.sym_size(0),
                    "metric: lengths must be (B) = (", v.sym_size(0), "), got ",
                    shape_text(lengths));
}

void check_positive(double number, const char* name) {
  TORCH_CHECK_VALUE(std::isfinite(number) && number > 0.0, "metric: ", name,
                    " must be positive and finite, got ", number);
}

/// What the row of the estimator reads is there, and fits.
void check_reads(const MetricInputs& inputs, const MetricOptions& options) {
  const EstimatorReads& reads = options.estimator->reads;
  if (reads.v_prev) check_like_v(inputs.v_prev, "v_prev", inputs, options);
  if (reads.q && reads.k) {
    check_attention_inputs(inputs, options);
  } else if (reads.q) {
    check_like_v(inputs.q, "q", inputs, options);
  }
  if (reads.q_prev) check_like_v(inputs.q_prev, "q_prev", inputs, options);
  if (reads.temperature) {
    const at::Tensor& t = needed(options.temperature, "temperature", inputs, options);
    TORCH_CHECK_VALUE(t.dim() == 1 && t.sym_size(0) == inputs.v.sym_size(1),
                      "metric: temperature must be (H) = (", inputs.v.sym_size(1), "), got ",
                      shape_text(t));
  }
}

void check_option(EstimatorOption::Field field, const MetricOptions& options) {
  switch (field) {
    case EstimatorOption::Field::kDelta:
      return check_positive(options.delta, "delta");
    case EstimatorOption::Field::kAttenuation:
      return check_positive(options.attenuation, "attenuation");
    case EstimatorOption::Field::kStep:
      return check_positive(options.step.value_or(1.0), "step");
    case EstimatorOption::Field::kQueryStride:
      TORCH_CHECK_VALUE(options.query_stride >= 1, "metric: query_stride must be at least 1, got ",
                        options.query_stride);
      return;
    case EstimatorOption::Field::kLow:
      TORCH_CHECK_VALUE(options.low >= 0.0 && options.low < 1.0,
                        "metric: low must be in [0, 1), got ", options.low);
      return;
    case EstimatorOption::Field::kValue:
      TORCH_CHECK_VALUE(std::isfinite(options.value) && options.value >= 0.0,
                        "metric: value must be finite and not negative, got ", options.value);
      return;
    case EstimatorOption::Field::kSeed:    // any number
    case EstimatorOption::Field::kPoints:  // of recipes alone
    case EstimatorOption::Field::kStart:
      return;
  }
}

}  // namespace

void check_metric(const MetricInputs& inputs, const MetricOptions& options) {
  const at::Tensor& v = inputs.v;
  TORCH_CHECK_VALUE(v.dim() == 4, "metric: v must be (B, H, N, D), got ", shape_text(v));
  TORCH_CHECK_TYPE(at::isFloatingType(v.scalar_type()),
                   "metric: v must have a floating point dtype, got ", v.scalar_type());
  if (options.lengths) check_lengths_tensor(*options.lengths, v);
  check_reads(inputs, options);
  for (const EstimatorOption* option : options.estimator->options) {
    if (option != nullptr) check_option(option->field, options);
  }
}

}  // namespace elliptical::ops
