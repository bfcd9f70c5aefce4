// SPDX-License-Identifier: MIT
#include <ATen/Functions.h>
#include <torch/csrc/autograd/custom_function.h>

#include "elliptical/kernels/dropout.h"
#include "elliptical/ops/dropout_impl.h"
#include "elliptical/ops/fused_layer_impl.h"
#include "elliptical/ops/parallel_impl.h"
#include "elliptical/ops/tensor_memory_impl.h"

namespace elliptical::ops {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

class DropoutNode : public torch::autograd::Function<DropoutNode> {
 public:
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& x, double p, int64_t seed) {
    keep_dropout(ctx, {p, seed});
    return apply_rule(x, kept_dropout(ctx));
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& above) {
    refuse_second_derivative("element_dropout");
    return {apply_rule(above[0], kept_dropout(ctx)), {}, {}};
  }

 private:
  static at::Tensor apply_rule(const at::Tensor& x, const kernels::ElementDropout& rule) {
    const at::Tensor values = x.contiguous();
    at::Tensor y = at::empty_like(values);
    kernels::scaled_dropout(values.numel(), read(values), 1.0, rule, write(y), torch_parallel_for);
    return y;
  }
};

}  // namespace

void keep_dropout(AutogradContext* ctx, ElementDropout dropout) {
  ctx->saved_data["p"] = dropout.p;
  ctx->saved_data["seed"] = dropout.seed;
}

kernels::ElementDropout kept_dropout(AutogradContext* ctx) {
  return dropout_rule({ctx->saved_data["p"].toDouble(), ctx->saved_data["seed"].toInt()});
}

at::Tensor element_dropout_fused(const at::Tensor& x, ElementDropout dropout) {
  return DropoutNode::apply(x, dropout.p, dropout.seed);
}

}  // namespace elliptical::ops
