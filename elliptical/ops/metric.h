// SPDX-License-Identifier: MIT
//
// The metric of elliptical attention on ATen tensors: how much the learned function varies along
// each coordinate, estimated per head. Every estimator first gives each token n a number
// x[n,i] >= 0 per coordinate, then s[i] is their mean (or median) over the real tokens, then m is
// s, scaled:
//
//   difference  x = |v - v_prev| / delta                                  (the paper's estimator)
//   median      the same x, lower median instead of mean
//   quotient    x = |v - v_prev| / (|q - q_prev| + attenuation)
//   consistent  x = |h(q + t e_i) - h(q - t e_i)|_1 / (2 t), h the attention output, t the step
//   jacobian    x = |dh / dq_i|_1 = scale |sum_j p_j k_ji v_j - kbar_i vbar|_1, at every
//               query_stride-th query: the limit of `consistent` for t -> 0, in closed form
//
// and controls that tell what the measured metric is worth:
//
//   random        uniform in [low, 1), fresh in every call, per batch item and head, scaled
//   random_fixed  uniform in [low, 1), a function of seed, head and coordinate alone, scaled
//   constant      m = value
//   matched       m = value, the mean metric of a paired run; constant under a name of its own
//   isotropic     `difference`, then each row replaced by its mean
//   temperature   m = temperature[h], a learned scalar per head
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

namespace elliptical::ops {

enum class MetricEstimator {
  kDifference,
  kMedian,
  kQuotient,
  kConsistent,
  kJacobian,
  kRandom,
  kRandomFixed,
  kConstant,
  kMatched,
  kIsotropic,
  kTemperature,
};

/// `sequence`: one row for all tokens. `prefix`: row n from the tokens <= n, for causal models.
enum class MetricScope { kSequence, kPrefix };

/// Division by the largest s of the row, by their mean, or none.
using kernels::MetricScaling;

/// Names as configurations spell them: "difference", "random_fixed", "prefix", "max", ...
std::string_view to_string(MetricEstimator estimator);
std::string_view to_string(MetricScope scope);
std::string_view to_string(MetricScaling scaling);

/// The value of a name. Throws c10::ValueError that suggests the nearest one.
MetricEstimator metric_estimator(std::string_view name);
MetricScope metric_scope(std::string_view name);
MetricScaling metric_scaling(std::string_view name);

/// All names, in the order of the enumerators.
std::vector<std::string> metric_estimator_names();

struct MetricOptions {
  MetricEstimator estimator = MetricEstimator::kDifference;
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

/// What estimators read. Absent tensors are those that the estimator does not name.
struct MetricInputs {
  at::Tensor v;                        ///< (B, H, N, D)
  std::optional<at::Tensor> v_prev{};  ///< like v: the values of the previous layer
  std::optional<at::Tensor> q{};       ///< quotient: like v. consistent, jacobian: (B, H, N, D)
  std::optional<at::Tensor> k{};       ///< consistent, jacobian: (B, Hk, N, D)
  std::optional<at::Tensor> q_prev{};  ///< quotient: like v
};

/// (B, H, 1, D) in the sequence scope, (B, H, N, D) in the prefix scope.
///
///     at::Tensor m = metric(v, v_prev, {.scope = MetricScope::kPrefix});
///     at::Tensor out = attention(q, k, v, m, {.is_causal = true});
at::Tensor metric(const at::Tensor& v, const at::Tensor& v_prev, const MetricOptions& options = {});
at::Tensor metric(const MetricInputs& inputs, const MetricOptions& options = {});

}  // namespace elliptical::ops
