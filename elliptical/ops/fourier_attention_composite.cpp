// SPDX-License-Identifier: MIT
#include <ATen/ATen.h>

#include <cmath>

#include "elliptical/base/infinity.h"
#include "elliptical/kernels/dropout.h"
#include "elliptical/ops/fourier_attention.h"

namespace elliptical::ops {
namespace {

constexpr double kFloor = 1e-20;
constexpr double kNear = 1e-2;

/// log |sinc(x)|, by its series near 0, where sin(x) / x has no gradient.
at::Tensor log_sinc(const at::Tensor& x) {
  const at::Tensor near = x.abs() < kNear;
  const at::Tensor x2 = at::where(near, x, 0.0).square();
  const at::Tensor far = at::where(near, 1.0, x);
  const at::Tensor exact = (far.sin() / far).abs().clamp_min(kFloor).log();
  return at::where(near, -x2 / 6 - x2.square() / 180 - x2 * x2.square() / 2835, exact);
}

at::Tensor visible_to(int64_t N, int64_t M, const FourierOptions& options) {
  at::Tensor seen = at::ones({N, M}, at::kBool);
  if (options.is_causal) seen = seen.tril(M - N);
  if (options.key_lengths) {
    const at::Tensor real = at::arange(M) < options.key_lengths->unsqueeze(-1);  // (B, M)
    seen = seen.logical_and(real.unsqueeze(1).unsqueeze(1));
    if (N == M) seen = seen.logical_and(real.unsqueeze(1).unsqueeze(-1));
  }
  return seen;
}

/// 0 or 1 / (1 - p) for every probability: the mask that the kernel draws.
at::Tensor dropout_factors(at::IntArrayRef sizes, const FourierOptions& options) {
  at::Tensor factors = at::empty(sizes, at::kDouble);
  const kernels::Dropout rule(options.dropout_p, static_cast<uint64_t>(options.dropout_seed));
  double* to = factors.mutable_data_ptr<double>();
  for (int64_t t = 0; t < sizes[0] * sizes[1]; ++t) {
    for (int64_t n = 0; n < sizes[2]; ++n) {
      for (int64_t j = 0; j < sizes[3]; ++j) *to++ = rule.keeps(t, n, j) ? rule.keep_scale : 0.0;
    }
  }
  return factors;
}

}  // namespace

at::Tensor fourier_map(const at::Tensor& a, const at::Tensor& b, const FourierOptions& options) {
  const at::Tensor seen = visible_to(a.size(2), b.size(2), options);
  const at::Tensor logits = 4 * log_sinc(a.unsqueeze(3) - b.unsqueeze(2)).sum(-1);
  // A finite number stands for "not seen": rows without any key have a logsumexp, too.
  at::Tensor total = at::where(seen, logits, -1e30).logsumexp(-1, /*keepdim=*/true);
  if (options.epsilon > 0) {
    total = at::logaddexp(total, at::full_like(total, std::log(options.epsilon)));
  }
  return at::where(seen, logits - total, -kInfinity).exp();
}

at::Tensor fourier_attention_composite(const at::Tensor& a,
                                       const at::Tensor& b,
                                       const at::Tensor& v,
                                       const FourierOptions& options) {
  at::Tensor map = fourier_map(a, b, options);
  if (options.dropout_p > 0) {
    map = map * dropout_factors(map.sizes(), options).to(map.scalar_type());
  }
  return map.matmul(v);
}

}  // namespace elliptical::ops
