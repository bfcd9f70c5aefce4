// SPDX-License-Identifier: MIT
#include "elliptical/ops/fourier_attention.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>

#include <cmath>

#include "elliptical/base/infinity.h"
#include "elliptical/kernels/fourier.h"
#include "elliptical/ops/fused_function_impl.h"
#include "elliptical/ops/parallel_impl.h"

namespace elliptical::ops {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

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

at::Tensor visible(int64_t N, int64_t M, const FourierOptions& options) {
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

kernels::FourierInputs<float> inputs(const at::Tensor& a,
                                     const at::Tensor& b,
                                     const at::Tensor& v,
                                     const at::Tensor& key_lengths,
                                     const AutogradContext& ctx) {
  const auto& saved = ctx.saved_data;
  kernels::FourierInputs<float> in{.B = a.size(0),
                                   .H = a.size(1),
                                   .N = a.size(2),
                                   .M = b.size(2),
                                   .D = a.size(3),
                                   .Dv = v.size(3),
                                   .a = a.const_data_ptr<float>(),
                                   .b = b.const_data_ptr<float>(),
                                   .v = v.const_data_ptr<float>(),
                                   .is_causal = saved.at("is_causal").toBool(),
                                   .epsilon = saved.at("epsilon").toDouble()};
  if (key_lengths.defined()) in.key_lengths = key_lengths.const_data_ptr<int64_t>();
  const double p = saved.at("dropout_p").toDouble();
  if (p > 0) in.dropout = {p, static_cast<uint64_t>(saved.at("dropout_seed").toInt())};
  return in;
}

class FourierFunction : public torch::autograd::Function<FourierFunction> {
 public:
  static at::Tensor forward(AutogradContext* ctx,
                            const at::Tensor& a_in,
                            const at::Tensor& b_in,
                            const at::Tensor& v_in,
                            const std::optional<at::Tensor>& key_lengths,
                            bool is_causal,
                            double epsilon,
                            double dropout_p,
                            int64_t dropout_seed) {
    ctx->saved_data["is_causal"] = is_causal;
    ctx->saved_data["epsilon"] = epsilon;
    ctx->saved_data["dropout_p"] = dropout_p;
    ctx->saved_data["dropout_seed"] = dropout_seed;
    const at::Tensor lengths = key_lengths ? key_lengths->contiguous() : at::Tensor();
    const at::Tensor a = a_in.contiguous(), b = b_in.contiguous(), v = v_in.contiguous();
    at::Tensor o = at::empty({a.size(0), a.size(1), a.size(2), v.size(3)}, a.options());
    at::Tensor row_max = at::empty({a.size(0), a.size(1), a.size(2)}, a.options());
    at::Tensor row_sum = at::empty_like(row_max);
    kernels::fourier_forward(inputs(a, b, v, lengths, *ctx),
                             {.o = o.mutable_data_ptr<float>(),
                              .row_max = row_max.mutable_data_ptr<float>(),
                              .row_sum = row_sum.mutable_data_ptr<float>()},
                             torch_parallel_for);
    ctx->save_for_backward({a, b, v, lengths, o, row_max, row_sum});
    return o;
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& d_outputs) {
    refuse_second_derivative("fourier_attention");
    const variable_list t = ctx->get_saved_variables();
    const at::Tensor d_o = d_outputs[0].contiguous();
    at::Tensor d_a = at::empty_like(t[0]), d_b = at::empty_like(t[1]), d_v = at::empty_like(t[2]);
    kernels::fourier_backward(inputs(t[0], t[1], t[2], t[3], *ctx),
                              {.o = t[4].const_data_ptr<float>(),
                               .row_max = t[5].const_data_ptr<float>(),
                               .row_sum = t[6].const_data_ptr<float>(),
                               .d_o = d_o.const_data_ptr<float>(),
                               .d_a = d_a.mutable_data_ptr<float>(),
                               .d_b = d_b.mutable_data_ptr<float>(),
                               .d_v = d_v.mutable_data_ptr<float>()},
                              torch_parallel_for);
    const at::Tensor none;
    return {d_a, d_b, d_v, none, none, none, none, none};
  }
};

}  // namespace

at::Tensor fourier_map(const at::Tensor& a, const at::Tensor& b, const FourierOptions& options) {
  const at::Tensor seen = visible(a.size(2), b.size(2), options);
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

at::Tensor fourier_attention(const at::Tensor& a,
                             const at::Tensor& b,
                             const at::Tensor& v,
                             const FourierOptions& options) {
  TORCH_CHECK_VALUE(a.dim() == 4 && b.dim() == 4 && v.dim() == 4 && a.size(3) == b.size(3) &&
                        a.size(0) == b.size(0) && a.size(1) == b.size(1) &&
                        v.sizes().slice(0, 3) == b.sizes().slice(0, 3),
                    "fourier_attention: a, b, v must be (B, H, N, D), (B, H, M, D), (B, H, M, Dv), "
                    "got ",
                    a.sizes(), ", ", b.sizes(), ", ", v.sizes());
  if (!fused_layer_applies(a)) return fourier_attention_composite(a, b, v, options);
  return FourierFunction::apply(a, b, v, options.key_lengths, options.is_causal, options.epsilon,
                                options.dropout_p, options.dropout_seed);
}

}  // namespace elliptical::ops
