// SPDX-License-Identifier: MIT
//
// The limit of `consistent` for t -> 0, in closed form:
//
//   x = |dh / dq_i|_1 = scale |sum_j p_j k_ji v_j - kbar_i vbar|_1
//
// at the queries 0, stride, 2 stride, ...: points that do not depend on N, so that a prefix does
// not see how long the sequence will be.
#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>

#include <cmath>

#include "elliptical/base/infinity.h"
#include "elliptical/ops/estimators/steps_impl.h"

namespace elliptical::ops::estimators {
namespace {

double logit_scale(const MetricInputs& inputs, const MetricOptions& options) {
  const int64_t D = inputs.q->sym_size(3).guard_int(__FILE__, __LINE__);
  return options.scale.value_or(1.0 / std::sqrt(static_cast<double>(D)));
}

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
    const at::Tensor d_output =
        scale * (product - k_mean.transpose(-2, -1) * v_mean);  // (.., D, Dv)
    rows.push_back(at::where(real.select(2, n), d_output.abs().sum(-1), 0.0));
  }
  const at::Tensor sampled =
      at::arange(N, q.options().dtype(at::kLong)).remainder(options.query_stride).eq(0);
  return {at::stack(rows, 2), real.logical_and(sampled.view({1, 1, N, 1}))};
}

}  // namespace

at::Tensor jacobian(const MetricInputs& inputs, const MetricOptions& options) {
  return scaled_mean(output_jacobian(inputs, options, real_tokens(inputs, options)), options);
}

}  // namespace elliptical::ops::estimators
