// SPDX-License-Identifier: MIT
//
// The metric of elliptical attention on ATen tensors: how much the learned function varies along
// each coordinate, estimated per head. An estimator gives each token n a number x[n,i] >= 0 per
// coordinate; s[i] is their mean (or median) over the real tokens, and m is s, scaled. A control
// gives m itself. metric_estimators.h has them all; the paper's, the default, is
//
//   x[n,i] = |v[n,i] - v_prev[n,i]| / delta
//
// A row with no change at all has m = 1 and gradient 0. The same op is
// `torch.ops.elliptical.metric`.
#pragma once

#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "elliptical/kernels/metric.h"
#include "elliptical/ops/metric_estimators.h"

namespace elliptical::ops {

/// `sequence`: one row for all tokens. `prefix`: row n from the tokens <= n, for causal models.
enum class MetricScope { kSequence, kPrefix };

/// Division by the largest s of the row, by their mean, or none.
using kernels::MetricScaling;

/// Names as configurations spell them: "prefix", "max", ...
std::string_view to_string(MetricScope scope);
std::string_view to_string(MetricScaling scaling);

/// The value of a name. Throws c10::ValueError that suggests the nearest one.
MetricScope metric_scope(std::string_view name);
MetricScaling metric_scaling(std::string_view name);

/// Fields that only some estimators look at name them.
struct MetricOptions {
  MetricEstimator estimator = {};
  MetricScope scope = MetricScope::kSequence;
  MetricScaling scaling = MetricScaling::kMax;
  double delta = 1.0;            ///< difference, median, isotropic; cancels when scaled
  bool differentiable = false;   ///< let gradients through; otherwise the metric is detached
  double attenuation = 0.5;      ///< quotient
  std::optional<double> step{};  ///< consistent: t; 0.5 / sqrt(D) when absent
  /// consistent, jacobian: h is causal attention. The prefix scope implies it.
  bool is_causal = false;
  std::optional<double> scale{};  ///< consistent, jacobian: of the logits; 1 / sqrt(D) when absent
  int64_t query_stride = 16;      ///< jacobian
  double low = 0.0;               ///< random, random_fixed
  int64_t seed = 0;               ///< random_fixed
  double value = 1.0;             ///< constant, matched
  std::optional<at::Tensor> lengths{};       ///< (B) int64: tokens from there on are padding
  std::optional<at::Tensor> temperature{};   ///< temperature: (H), always differentiable
  std::optional<at::Generator> generator{};  ///< random; torch's default when absent
};

/// What estimators read. Absent tensors are those that the row of the estimator does not name.
struct MetricInputs {
  at::Tensor v;                        ///< (B, H, N, D)
  std::optional<at::Tensor> v_prev{};  ///< like v: the values of the previous layer
  std::optional<at::Tensor> q{};       ///< like v; beside k: (B, H, N, D), H a multiple of v's
  std::optional<at::Tensor> k{};       ///< (B, Hk, N, D), and v (B, Hk, N, Dv)
  std::optional<at::Tensor> q_prev{};  ///< like v
};

/// (B, H, 1, D) in the sequence scope, (B, H, N, D) in the prefix scope.
///
///     at::Tensor m = metric(v, v_prev, {.scope = MetricScope::kPrefix});
///     at::Tensor out = attention(q, k, v, m, {.is_causal = true});
at::Tensor metric(const at::Tensor& v, const at::Tensor& v_prev, const MetricOptions& options = {});
at::Tensor metric(const MetricInputs& inputs, const MetricOptions& options = {});

}  // namespace elliptical::ops
