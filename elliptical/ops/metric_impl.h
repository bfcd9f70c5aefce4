// SPDX-License-Identifier: MIT
//
// What the sources of the metric op share.
#pragma once

#include <ATen/core/Tensor.h>

#include "elliptical/ops/metric.h"

namespace elliptical::ops {

/// Throws c10::ValueError or c10::TypeError that names the argument, what it must be and what it
/// is.
void check_metric(const MetricInputs& inputs, const MetricOptions& options);

/// Every estimator with ATen ops, differentiable: the reference, and the path of all but
/// `difference` on float CPU tensors.
at::Tensor metric_composite(const MetricInputs& inputs, const MetricOptions& options);

/// m from s (..., D): divided by the largest or the mean of each row; 1 in rows that are all 0.
at::Tensor scale_rows(const at::Tensor& s, MetricScaling scaling);

/// `elliptical::_metric_difference`: the kernel of elliptical/kernels/metric.h; no gradient.
using MetricDifferenceSignature = at::Tensor(const at::Tensor& v,
                                             const at::Tensor& v_prev,
                                             const std::optional<at::Tensor>& lengths,
                                             bool prefix,
                                             std::string_view scaling,
                                             double delta);
MetricDifferenceSignature metric_difference_cpu, metric_difference_meta, call_metric_difference;

/// `elliptical::_fixed_uniform`: (1, H, 1, D) numbers in [0, 1) of the dtype of v (B, H, N, D) that
/// depend on the seed, the head and the coordinate alone.
at::Tensor fixed_uniform(const at::Tensor& v, int64_t seed);
at::Tensor fixed_uniform_kernel(const at::Tensor& v, int64_t seed);
at::Tensor fixed_uniform_meta(const at::Tensor& v, int64_t seed);

/// The kernel of `elliptical::metric`: checks, then the fused kernel or the composite.
at::Tensor metric_op(const at::Tensor& v,
                     const std::optional<at::Tensor>& v_prev,
                     const std::optional<at::Tensor>& q,
                     const std::optional<at::Tensor>& k,
                     const std::optional<at::Tensor>& q_prev,
                     const std::optional<at::Tensor>& lengths,
                     const std::optional<at::Tensor>& temperature,
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
                     std::optional<at::Generator> generator);

}  // namespace elliptical::ops
