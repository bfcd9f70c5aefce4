// SPDX-License-Identifier: MIT
//
// Every estimator of the metric with ATen ops, in the three steps of metric.h: a number per token
// and coordinate, pooled over tokens, scaled. Differentiable; whether gradients pass is up to the
// caller.
#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>

#include <cmath>

#include "elliptical/base/infinity.h"
#include "elliptical/ops/attention.h"
#include "elliptical/ops/masks_impl.h"
#include "elliptical/ops/metric_impl.h"

namespace elliptical::ops {
namespace {

/// x (B, H, N, D), 0 where not counted, and the tokens that count, (B|1, 1, N, 1).
struct TokenValues {
  at::Tensor x;
  at::Tensor counted;
};

/// (B|1, 1, N, 1) true for real tokens.
at::Tensor real_tokens(const MetricInputs& inputs, const MetricOptions& options) {
  const c10::SymInt N = inputs.v.sym_size(2);
  if (options.lengths) {
    return valid_tokens(*options.lengths, N, "metric: lengths", "N").unsqueeze(1).unsqueeze(-1);
  }
  return at::ones_symint({1, 1, N, 1}, inputs.v.options().dtype(at::kBool));
}

/// |a - b|, 0 at padding: masked before the absolute value, so that NaN there has no gradient.
at::Tensor change(const at::Tensor& a, const at::Tensor& b, const at::Tensor& real) {
  return at::where(real, a - b, 0.0).abs();
}

bool is_causal(const MetricOptions& options) {
  return options.is_causal || options.scope == MetricScope::kPrefix;
}

double logit_scale(const MetricInputs& inputs, const MetricOptions& options) {
  const int64_t D = inputs.q->sym_size(3).guard_int(__FILE__, __LINE__);
  return options.scale.value_or(1.0 / std::sqrt(static_cast<double>(D)));
}

/// Central differences of the attention output, all queries shifted together.
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

/// |dh/dq_i|_1 at the queries 0, stride, 2 stride, ...: points that do not depend on N, so that a
/// prefix does not see how long the sequence will be.
TokenValues output_jacobian(const MetricInputs& inputs,
                            const MetricOptions& options,
                            const at::Tensor& real) {
  const at::Tensor& q = *inputs.q;
  const int64_t N = q.sym_size(2).guard_int(__FILE__, __LINE__);
  const int64_t H = q.sym_size(1).guard_int(__FILE__, __LINE__);
  const int64_t Hk = inputs.v.sym_size(1).guard_int(__FILE__, __LINE__);
  if (N == 0 || H == 0) return {at::zeros_like(q), real};
  const double scale = logit_scale(inputs, options);
  const at::Tensor k = at::where(real, *inputs.k, 0.0).repeat_interleave(H / Hk, 1);
  const at::Tensor v = at::where(real, inputs.v, 0.0).repeat_interleave(H / Hk, 1);

  const at::Tensor nothing = at::zeros_like(q.select(2, 0));
  std::vector<at::Tensor> rows;
  for (int64_t n = 0; n < N; ++n) {
    if (n % options.query_stride != 0) {
      rows.push_back(nothing);
      continue;
    }
    // A padded query sees every real key; its row does not count.
    const int64_t keys = is_causal(options) ? n + 1 : N;
    const at::Tensor k_seen = k.narrow(2, 0, keys), v_seen = v.narrow(2, 0, keys);
    const at::Tensor query = at::where(real.select(2, n), q.select(2, n), 0.0).unsqueeze(2);
    const at::Tensor logits = query.matmul(k_seen.transpose(-2, -1)) * scale;  // (B, H, 1, keys)
    const at::Tensor visible = real.narrow(2, 0, keys).transpose(-2, -1);
    const at::Tensor masked = at::where(visible, logits, -kInfinity);
    const at::Tensor p = at::where(visible, masked.softmax(-1), 0.0);
    const at::Tensor k_mean = p.matmul(k_seen), v_mean = p.matmul(v_seen);
    const at::Tensor product = (p.transpose(-2, -1) * k_seen).transpose(-2, -1).matmul(v_seen);
    const at::Tensor jacobian =
        scale * (product - k_mean.transpose(-2, -1) * v_mean);  // (.., D, Dv)
    rows.push_back(at::where(real.select(2, n), jacobian.abs().sum(-1), 0.0));
  }
  const at::Tensor sampled =
      at::arange(N, q.options().dtype(at::kLong)).remainder(options.query_stride).eq(0);
  return {at::stack(rows, 2), real.logical_and(sampled.view({1, 1, N, 1}))};
}

TokenValues token_values(const MetricInputs& inputs, const MetricOptions& options) {
  const at::Tensor real = real_tokens(inputs, options);
  switch (options.estimator) {
    case MetricEstimator::kQuotient:
      return {change(inputs.v, *inputs.v_prev, real) /
                  (change(*inputs.q, *inputs.q_prev, real) + options.attenuation),
              real};
    case MetricEstimator::kConsistent:
      return {output_differences(inputs, options), real};
    case MetricEstimator::kJacobian:
      return output_jacobian(inputs, options, real);
    default:
      return {change(inputs.v, *inputs.v_prev, real) / options.delta, real};
  }
}

/// Mean over the tokens that count: (B, H, 1, D), or (B, H, N, D) with a row per prefix.
at::Tensor mean_over_tokens(const TokenValues& values, MetricScope scope) {
  const at::Tensor ones = values.counted.to(values.x.scalar_type());
  if (scope == MetricScope::kPrefix) return values.x.cumsum(2) / ones.cumsum(2).clamp_min(1);
  return values.x.sum(2, /*keepdim=*/true) / ones.sum(2, /*keepdim=*/true).clamp_min(1);
}

/// Lower median over the first `tokens` tokens that count, (B, H, 1, D).
at::Tensor median_of_first(const TokenValues& values, int64_t tokens) {
  const at::Tensor counted = values.counted.narrow(2, 0, tokens);
  const at::Tensor x = at::where(counted, values.x.narrow(2, 0, tokens), kInfinity);
  const at::Tensor count = counted.sum(2, /*keepdim=*/true);  // (B|1, 1, 1, 1)
  const at::Tensor middle = (count - 1).clamp_min(0).floor_divide(2);
  const at::Tensor sorted = std::get<0>(x.sort(2));
  const at::Tensor median =
      sorted.gather(2, middle.expand_symint({x.sym_size(0), x.sym_size(1), 1, x.sym_size(3)}));
  return at::where(count > 0, median, 0.0);
}

at::Tensor median_over_tokens(const TokenValues& values, MetricScope scope) {
  const int64_t N = values.x.sym_size(2).guard_int(__FILE__, __LINE__);
  if (N == 0) return mean_over_tokens(values, scope);
  if (scope == MetricScope::kSequence) return median_of_first(values, N);
  std::vector<at::Tensor> rows;
  for (int64_t n = 0; n < N; ++n) rows.push_back(median_of_first(values, n + 1));
  return at::cat(rows, 2);
}

/// The same row for every token in the prefix scope: a control that knows no token is causal.
at::Tensor repeat_rows(const at::Tensor& row, const MetricInputs& inputs, MetricScope scope) {
  const at::Tensor& v = inputs.v;
  const c10::SymInt rows = scope == MetricScope::kPrefix ? v.sym_size(2) : c10::SymInt(1);
  return row.expand_symint({v.sym_size(0), v.sym_size(1), rows, v.sym_size(3)});
}

at::Tensor uniform(const at::Tensor& unit, const MetricOptions& options) {
  return scale_rows(options.low + (1.0 - options.low) * unit, options.scaling);
}

}  // namespace

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

at::Tensor metric_composite(const MetricInputs& inputs, const MetricOptions& options) {
  const at::Tensor& v = inputs.v;
  switch (options.estimator) {
    case MetricEstimator::kRandom: {
      const at::Tensor unit = at::rand_symint({v.sym_size(0), v.sym_size(1), 1, v.sym_size(3)},
                                              options.generator, v.options());
      return repeat_rows(uniform(unit, options), inputs, options.scope);
    }
    case MetricEstimator::kRandomFixed:
      return repeat_rows(uniform(fixed_uniform(v, options.seed), options), inputs, options.scope);
    case MetricEstimator::kConstant:
    case MetricEstimator::kMatched:
      return repeat_rows(at::full({1, 1, 1, 1}, options.value, v.options()), inputs, options.scope);
    case MetricEstimator::kTemperature:
      return repeat_rows(options.temperature->reshape({1, -1, 1, 1}), inputs, options.scope);
    case MetricEstimator::kMedian:
      return scale_rows(median_over_tokens(token_values(inputs, options), options.scope),
                        options.scaling);
    default: {
      const at::Tensor m = scale_rows(
          mean_over_tokens(token_values(inputs, options), options.scope), options.scaling);
      if (options.estimator != MetricEstimator::kIsotropic) return m;
      return m.mean(-1, /*keepdim=*/true).expand_as(m);
    }
  }
}

}  // namespace elliptical::ops
