// SPDX-License-Identifier: MIT
#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>

#include "elliptical/ops/dropout_impl.h"
#include "elliptical/ops/residual_norm_impl.h"

namespace elliptical::ops {

at::Tensor per_sample(const at::Tensor& factors, const at::Tensor& x) {
  std::vector<int64_t> sizes(static_cast<size_t>(x.dim()), 1);
  sizes[0] = x.size(0);
  return factors.view(sizes);
}

at::Tensor residual_dropout_norm_composite(const at::Tensor& x,
                                           const std::optional<at::Tensor>& bias,
                                           const at::Tensor& residual,
                                           const NormWeights& norm,
                                           ElementDropout dropout) {
  const at::Tensor sum = residual + drop(bias ? x + *bias : x, dropout);
  return at::layer_norm(sum, {sum.size(-1)}, norm.weight, norm.bias, norm.eps);
}

NormedSum residual_norm_composite(const at::Tensor& x,
                                  const at::Tensor& residual,
                                  const std::optional<at::Tensor>& factors,
                                  const NormWeights& norm) {
  const at::Tensor sum = residual + (factors ? x * per_sample(*factors, x) : x);
  return {sum, at::layer_norm(sum, {sum.size(-1)}, norm.weight, norm.bias, norm.eps)};
}

}  // namespace elliptical::ops
