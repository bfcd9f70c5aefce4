// SPDX-License-Identifier: MIT
//
// The steps that estimators are made of: a number per token and coordinate, pooled over tokens,
// scaled.
#pragma once

#include "elliptical/ops/metric.h"

namespace elliptical::ops::estimators {

/// x (B, H, N, D), 0 where not counted, and the tokens that count, (B|1, 1, N, 1).
struct TokenValues {
  at::Tensor x;
  at::Tensor counted;
};

/// (B|1, 1, N, 1) true for real tokens.
at::Tensor real_tokens(const MetricInputs& inputs, const MetricOptions& options);

/// |a - b|, 0 at padding: masked before the absolute value, so that NaN there has no gradient.
at::Tensor change(const at::Tensor& a, const at::Tensor& b, const at::Tensor& real);

/// |v - v_prev| / delta.
TokenValues value_changes(const MetricInputs& inputs, const MetricOptions& options);

/// Whether the attention whose output an estimator varies is causal.
bool is_causal(const MetricOptions& options);

/// Mean over the tokens that count: (B, H, 1, D), or (B, H, N, D) with a row per prefix.
at::Tensor mean_over_tokens(const TokenValues& values, MetricScope scope);

/// m from s (..., D): divided by the largest or the mean of each row; 1 in rows that are all 0.
at::Tensor scale_rows(const at::Tensor& s, MetricScaling scaling);

/// The scaled mean.
at::Tensor scaled_mean(const TokenValues& values, const MetricOptions& options);

/// (1|B, 1|H, 1, 1|D) as the metric of each token: a control that knows no token is causal.
at::Tensor repeat_rows(const at::Tensor& row,
                       const MetricInputs& inputs,
                       const MetricOptions& options);

}  // namespace elliptical::ops::estimators
