// SPDX-License-Identifier: MIT
//
// The prefix metric of a stream: feed the values of new tokens, get their rows. With cached keys
// and values and bottom-right causal attention, decoding token by token gives the full-sequence
// result.
//
//     PrefixMetricState state;
//     for each new piece (B, H, T, D) of v and v_prev:
//       at::Tensor m = state.update(v, v_prev);                       // (B, H, T, D)
//       at::Tensor out = attention(q, k_cache, v_cache, m, {.is_causal = true});
#pragma once

#include <ATen/core/Tensor.h>

#include <tuple>

#include "elliptical/ops/metric.h"

namespace elliptical::ops {

/// One layer's running sum of |v - v_prev|: D numbers per head, whatever the length of the stream.
class PrefixMetricState {
 public:
  explicit PrefixMetricState(MetricScaling scaling = MetricScaling::kMax, double delta = 1.0)
      : scaling_(scaling), delta_(delta) {}

  /// Rows (B, H, T, D) of the metric for the next T tokens, detached: what `metric` in the prefix
  /// scope gives for these tokens of the whole sequence, to rounding.
  at::Tensor update(const at::Tensor& v, const at::Tensor& v_prev);

  /// (B, H, 1, D) sum so far; undefined before the first update.
  const at::Tensor& sum() const { return sum_; }
  /// Number of tokens so far.
  int64_t count() const { return count_; }

 private:
  MetricScaling scaling_;
  double delta_;
  at::Tensor sum_;
  int64_t count_ = 0;
};

/// The next rows of the estimator that `options` names, which must stream: what `metric` in the
/// prefix scope gives for these tokens of the whole sequence, to rounding. A metric that reads no
/// tokens has the same row for all of them and needs no state.
at::Tensor next_metric_rows(const MetricInputs& inputs,
                            const MetricOptions& options,
                            PrefixMetricState& state);

/// `elliptical::_prefix_metric`: (rows, next sum) from the sum so far, if any, over `count` tokens.
std::tuple<at::Tensor, at::Tensor> prefix_metric_op(const at::Tensor& v,
                                                    const at::Tensor& v_prev,
                                                    const std::optional<at::Tensor>& sum,
                                                    int64_t count,
                                                    std::string_view scaling,
                                                    double delta);

}  // namespace elliptical::ops
