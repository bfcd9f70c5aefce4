// SPDX-License-Identifier: MIT
#include "elliptical/ops/fourier_attention.h"

#include <c10/util/Exception.h>

#include "elliptical/ops/fourier_attention_impl.h"
#include "elliptical/ops/fused_layer_impl.h"

namespace elliptical::ops {

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
  return fused_layer_applies(a) ? fourier_attention_fused(a, b, v, options)
                                : fourier_attention_composite(a, b, v, options);
}

}  // namespace elliptical::ops
