// SPDX-License-Identifier: MIT
#include <ATen/Functions.h>
#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>

#include "elliptical/ops/dropout_impl.h"

namespace elliptical::ops {
namespace {

/// 0 where `like` is dropped, 1 / (1 - p) elsewhere.
at::Tensor keep_factors(const at::Tensor& like, ElementDropout dropout) {
  const kernels::ElementDropout rule = dropout_rule(dropout);
  const at::Tensor keep = at::empty(like.sizes(), at::kDouble);
  double* factor = keep.mutable_data_ptr<double>();
  at::parallel_for(0, like.numel(), 4096, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) factor[i] = rule.keeps(i) ? rule.keep_scale : 0.0;
  });
  return keep.to(like.options());
}

}  // namespace

at::Tensor drop(const at::Tensor& x, ElementDropout dropout) {
  return dropout.p == 0.0 ? x : x * keep_factors(x, dropout);
}

at::Tensor element_dropout_composite(const at::Tensor& x, ElementDropout dropout) {
  return dropout.p == 0.0 ? x.clone() : drop(x, dropout);
}

}  // namespace elliptical::ops
