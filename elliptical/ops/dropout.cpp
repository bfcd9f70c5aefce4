// SPDX-License-Identifier: MIT
#include "elliptical/ops/dropout.h"

#include <c10/util/Exception.h>

#include "elliptical/ops/dropout_impl.h"
#include "elliptical/ops/fused_layer_impl.h"
#include "elliptical/ops/layer_checks_impl.h"

namespace elliptical::ops {

void check_dropout(const char* op, ElementDropout dropout) {
  TORCH_CHECK_VALUE(dropout.p >= 0.0 && dropout.p < 1.0, op, ": dropout.p must be in [0, 1), got ",
                    dropout.p);
}

at::Tensor element_dropout(const at::Tensor& x, ElementDropout dropout) {
  check_floating("element_dropout", "x", x);
  check_dropout("element_dropout", dropout);
  return fused_layer_applies(x) ? element_dropout_fused(x, dropout)
                                : element_dropout_composite(x, dropout);
}

}  // namespace elliptical::ops
