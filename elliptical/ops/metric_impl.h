// SPDX-License-Identifier: MIT
//
// What the sources of the metric op share: the arguments of its dispatcher ops as structs, its
// checks and its kernels. Names of estimators, scopes and scalings exist where the dispatcher is
// entered and left; all else has the values.
#pragma once

#include <ATen/core/Tensor.h>

#include <tuple>

#include "elliptical/ops/flat_arguments_impl.h"
#include "elliptical/ops/metric.h"

namespace elliptical::ops {

/// The arguments of `elliptical::metric` in the order of its schema.
struct MetricArgs {
  at::Tensor v;
  OptionalTensor v_prev, q, k, q_prev, lengths, temperature;
  std::string_view estimator, scope, scaling;
  double delta;
  bool differentiable;
  double attenuation;
  std::optional<double> step;
  bool is_causal;
  std::optional<double> scale;
  int64_t query_stride;
  double low;
  int64_t seed;
  double value;
  std::optional<at::Generator> generator;

  auto flat() const {
    return std::tie(v, v_prev, q, k, q_prev, lengths, temperature, estimator, scope, scaling, delta,
                    differentiable, attenuation, step, is_causal, scale, query_stride, low, seed,
                    value, generator);
  }
};

using MetricSignature = at::Tensor(const at::Tensor& v,
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
                                   std::optional<at::Generator> generator);

/// `elliptical::metric`: names become values, arguments are checked, then the fused form or ATen.
at::Tensor metric_op(const MetricArgs& args);

/// Throws c10::ValueError or c10::TypeError that names the argument, what it must be and what it
/// is.
void check_metric(const MetricInputs& inputs, const MetricOptions& options);

/// `elliptical::_metric_difference`: the kernel of elliptical/kernels/metric.h; no gradient.
struct MetricDifference {
  at::Tensor v, v_prev;
  OptionalTensor lengths;
  bool prefix;
  MetricScaling scaling;
  double delta;
};
at::Tensor call_metric_difference(const MetricDifference& args);

using MetricDifferenceSignature = at::Tensor(const at::Tensor& v,
                                             const at::Tensor& v_prev,
                                             const OptionalTensor& lengths,
                                             bool prefix,
                                             std::string_view scaling,
                                             double delta);
MetricDifferenceSignature metric_difference_cpu, metric_difference_meta;

/// s = mean_n |v - v_prev| / delta, (B, H, 1, D), with a gradient: what an attack through the
/// metric spends its time on, were it composed of absolute values and means.
at::Tensor mean_change(const at::Tensor& v, const at::Tensor& v_prev, double delta);

/// `elliptical::_fixed_uniform`: (1, H, 1, D) numbers in [0, 1) of the dtype of v (B, H, N, D) that
/// depend on the seed, the head and the coordinate alone.
at::Tensor fixed_uniform_kernel(const at::Tensor& v, int64_t seed);
at::Tensor fixed_uniform_meta(const at::Tensor& v, int64_t seed);

}  // namespace elliptical::ops
