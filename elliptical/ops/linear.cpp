// SPDX-License-Identifier: MIT
#include "elliptical/ops/linear.h"

#include <ATen/Functions.h>
#include <torch/csrc/autograd/custom_function.h>

#include "elliptical/ops/fused_layer_impl.h"
#include "elliptical/ops/product_impl.h"

namespace elliptical::ops {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

class LinearNode : public torch::autograd::Function<LinearNode> {
 public:
  static at::Tensor forward(AutogradContext* ctx,
                            const at::Tensor& x,
                            const at::Tensor& weight,
                            const at::Tensor& bias) {
    const at::Tensor rows = x.reshape({-1, x.size(-1)}).contiguous();
    ctx->save_for_backward({rows, weight});
    std::vector<int64_t> shape = x.sizes().vec();
    ctx->saved_data["shape"] = shape;
    shape.back() = weight.size(0);
    return row_product(rows, weight.t(), bias.contiguous()).view(shape);
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& above) {
    refuse_second_derivative("linear");
    const variable_list saved = ctx->get_saved_variables();
    const at::Tensor &rows = saved[0], &weight = saved[1];
    const at::Tensor dy = above[0].reshape({rows.size(0), weight.size(0)}).contiguous();
    at::Tensor dx, d_weight, d_bias;
    if (ctx->needs_input_grad(0)) {
      dx = row_product(dy, weight, {}).view(ctx->saved_data["shape"].toIntVector());
    }
    if (ctx->needs_input_grad(1)) {
      d_weight = at::empty(weight.sizes(), weight.options());
      gradient_product(dy, rows, d_weight);
    }
    if (ctx->needs_input_grad(2)) d_bias = column_sums(dy);
    return {dx, d_weight, d_bias};
  }
};

bool fused_applies(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias) {
  const auto fits = [&](const at::Tensor& t) {
    return t.scalar_type() == at::kFloat && t.device().is_cpu();
  };
  return fused_layer_applies(x) && fits(weight) && fits(bias) && x.dim() >= 2 &&
         weight.dim() == 2 && x.size(-1) == weight.size(1) && x.size(-1) > 0 &&
         bias.numel() == weight.size(0) && x.numel() >= kFewestRows * x.size(-1);
}

}  // namespace

at::Tensor linear(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias) {
  // Arguments that do not fit each other get torch's message.
  return fused_applies(x, weight, bias) ? LinearNode::apply(x, weight, bias)
                                        : at::linear(x, weight, bias);
}

}  // namespace elliptical::ops
