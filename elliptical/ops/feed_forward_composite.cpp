// SPDX-License-Identifier: MIT
//
// The layers of feedforward.h as plain ATen operations: any dtype, any device, twice
// differentiable, the tests' reference.
#include <ATen/Functions.h>
#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>

#include "elliptical/kernels/dropout.h"
#include "elliptical/ops/feed_forward.h"

namespace elliptical::ops {
namespace {

/// 0 where `like` is dropped, 1 / (1 - p) elsewhere.
at::Tensor keep_factors(const at::Tensor& like, ElementDropout dropout) {
  const kernels::ElementDropout rule(dropout.p, static_cast<uint64_t>(dropout.seed));
  const at::Tensor keep = at::empty(like.sizes(), at::kDouble);
  double* factor = keep.mutable_data_ptr<double>();
  at::parallel_for(0, like.numel(), 4096, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) factor[i] = rule.keeps(i) ? rule.keep_scale : 0.0;
  });
  return keep.to(like.options());
}

at::Tensor drop(const at::Tensor& x, ElementDropout dropout) {
  return dropout.p == 0.0 ? x : x * keep_factors(x, dropout);
}

}  // namespace

at::Tensor bias_relu_dropout_composite(const at::Tensor& x,
                                       const at::Tensor& bias,
                                       ElementDropout dropout) {
  return drop((x + bias).relu(), dropout);
}

at::Tensor residual_dropout_norm_composite(const at::Tensor& x,
                                           const std::optional<at::Tensor>& bias,
                                           const at::Tensor& residual,
                                           const at::Tensor& weight,
                                           const at::Tensor& norm_bias,
                                           double eps,
                                           ElementDropout dropout) {
  const at::Tensor sum = residual + drop(bias ? x + *bias : x, dropout);
  return at::layer_norm(sum, {sum.size(-1)}, weight, norm_bias, eps);
}

at::Tensor feed_forward_composite(const at::Tensor& x,
                                  const at::Tensor& up,
                                  const at::Tensor& up_bias,
                                  const at::Tensor& down,
                                  ElementDropout dropout) {
  return at::linear(bias_relu_dropout_composite(at::linear(x, up), up_bias, dropout), down);
}

at::Tensor embed_composite(const at::Tensor& table,
                           const at::Tensor& tokens,
                           const at::Tensor& positions,
                           double scale,
                           ElementDropout dropout) {
  return drop(at::embedding(table, tokens) * scale + positions, dropout);
}

at::Tensor element_dropout_composite(const at::Tensor& x, ElementDropout dropout) {
  return dropout.p == 0.0 ? x.clone() : drop(x, dropout);
}

}  // namespace elliptical::ops
