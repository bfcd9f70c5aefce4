// SPDX-License-Identifier: MIT
//
// Sum and norm as autograd functions over the kernels of elliptical/kernels/residual_norm.h, one node
// each. Arguments were checked by the public functions.
#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <torch/csrc/autograd/custom_function.h>

#include "elliptical/kernels/residual_norm.h"
#include "elliptical/ops/dropout_impl.h"
#include "elliptical/ops/fused_layer_impl.h"
#include "elliptical/ops/parallel_impl.h"
#include "elliptical/ops/residual_norm_impl.h"
#include "elliptical/ops/tensor_memory_impl.h"

namespace elliptical::ops {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

kernels::RowFactors row_factors(const at::Tensor& factors, int64_t rows) {
  if (!factors.defined() || factors.numel() == 0) return {};
  return {read(factors), rows / factors.numel()};
}

class ResidualDropoutNormNode : public torch::autograd::Function<ResidualDropoutNormNode> {
 public:
  static at::Tensor forward(AutogradContext* ctx,
                            const at::Tensor& x,
                            const std::optional<at::Tensor>& bias,
                            const at::Tensor& residual,
                            const at::Tensor& weight,
                            const at::Tensor& norm_bias,
                            double eps,
                            double p,
                            int64_t seed,
                            bool need_gradient) {
    const at::Tensor x_rows = x.contiguous(), r = residual.contiguous(), w = weight.contiguous(),
                     nb = norm_bias.contiguous();
    const at::Tensor b = bias ? bias->contiguous() : at::Tensor();
    at::Tensor y = at::empty_like(x_rows), normalised, rstd;
    if (need_gradient) {
      normalised = at::empty_like(x_rows);
      rstd = at::empty({rows_of(x).rows}, x_rows.options());
    }
    kernels::residual_dropout_norm_forward(rows_of(x),
                                           {.x = read(x_rows),
                                            .bias = bias ? read(b) : nullptr,
                                            .residual = read(r),
                                            .norm = {read(w), read(nb), eps},
                                            .dropout = dropout_rule({p, seed})},
                                           write(y), need_gradient ? write(normalised) : nullptr,
                                           need_gradient ? write(rstd) : nullptr,
                                           torch_parallel_for);
    ctx->save_for_backward({normalised, rstd, w});
    ctx->saved_data["has_bias"] = bias.has_value();
    keep_dropout(ctx, {p, seed});
    return y;
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& above) {
    refuse_second_derivative("residual_dropout_norm");
    const variable_list saved = ctx->get_saved_variables();
    const at::Tensor &normalised = saved[0], &rstd = saved[1], &weight = saved[2];
    const at::Tensor dy = above[0].contiguous();
    const auto row = [&] { return at::empty_like(weight); };
    const at::Tensor dx = at::empty_like(normalised), d_residual = at::empty_like(normalised);
    const at::Tensor d_weight = row(), d_norm_bias = row();
    const at::Tensor d_bias = ctx->saved_data["has_bias"].toBool() ? row() : at::Tensor();
    kernels::residual_dropout_norm_backward(rows_of(normalised),
                                            {.dy = read(dy),
                                             .normalised = read(normalised),
                                             .rstd = read(rstd),
                                             .weight = read(weight),
                                             .dropout = kept_dropout(ctx),
                                             .dx = write(dx),
                                             .d_residual = write(d_residual),
                                             .d_bias = d_bias.defined() ? write(d_bias) : nullptr,
                                             .d_weight = write(d_weight),
                                             .d_norm_bias = write(d_norm_bias)},
                                            torch_parallel_for);
    return {dx, d_bias, d_residual, d_weight, d_norm_bias, {}, {}, {}, {}};
  }
};

class ResidualNormNode : public torch::autograd::Function<ResidualNormNode> {
 public:
  static variable_list forward(AutogradContext* ctx,
                               const at::Tensor& x,
                               const at::Tensor& residual,
                               const std::optional<at::Tensor>& factors,
                               const at::Tensor& weight,
                               const at::Tensor& norm_bias,
                               double eps,
                               bool need_gradient) {
    const at::Tensor x_rows = x.contiguous(), r = residual.contiguous(), w = weight.contiguous(),
                     nb = norm_bias.contiguous();
    const at::Tensor f = factors ? factors->contiguous() : at::Tensor();
    const kernels::Rows size = rows_of(x);
    at::Tensor sum = at::empty_like(x_rows), normed = at::empty_like(x_rows), normalised, rstd;
    if (need_gradient) {
      normalised = at::empty_like(x_rows);
      rstd = at::empty({size.rows}, x_rows.options());
    }
    kernels::residual_dropout_norm_forward(
        size,
        {.x = read(x_rows),
         .residual = read(r),
         .norm = {read(w), read(nb), eps},
         .row_factors = row_factors(f, size.rows),
         .sum = write(sum)},
        write(normed), need_gradient ? write(normalised) : nullptr,
        need_gradient ? write(rstd) : nullptr, torch_parallel_for);
    ctx->save_for_backward({normalised, rstd, w, f});
    ctx->set_materialize_grads(false);
    return {sum, normed};
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& above) {
    refuse_second_derivative("residual_norm");
    const variable_list saved = ctx->get_saved_variables();
    const at::Tensor &normalised = saved[0], &rstd = saved[1], &w = saved[2], &f = saved[3];
    const at::Tensor d_sum = above[0].defined() ? above[0].contiguous() : at::Tensor();
    if (!above[1].defined()) {  // nobody used the norm
      return {f.defined() ? d_sum * per_sample(f, d_sum) : d_sum, d_sum, {}, {}, {}, {}, {}};
    }
    const at::Tensor dy = above[1].contiguous();
    const kernels::Rows size = rows_of(normalised);
    const at::Tensor d_residual = at::empty_like(normalised);
    // Without factors both gradients are the same tensor.
    const at::Tensor dx = f.defined() ? at::empty_like(normalised) : d_residual;
    constexpr size_t kWeight = 2, kNormBias = 3;  // positions among the tensors, without factors
    const size_t more = f.defined() ? 1 : 0;
    const bool is_frozen =
        !ctx->needs_input_grad(kWeight + more) && !ctx->needs_input_grad(kNormBias + more);
    at::Tensor d_weight, d_norm_bias;
    if (!is_frozen) {
      d_weight = at::empty_like(w);
      d_norm_bias = at::empty_like(w);
    }
    kernels::residual_dropout_norm_backward(
        size,
        {.dy = read(dy),
         .normalised = read(normalised),
         .rstd = read(rstd),
         .weight = read(w),
         .row_factors = row_factors(f, size.rows),
         .d_sum = d_sum.defined() ? read(d_sum) : nullptr,
         .dx = f.defined() ? write(dx) : nullptr,
         .d_residual = write(d_residual),
         .d_weight = is_frozen ? nullptr : write(d_weight),
         .d_norm_bias = is_frozen ? nullptr : write(d_norm_bias)},
        torch_parallel_for);
    return {dx, d_residual, {}, d_weight, d_norm_bias, {}, {}};
  }
};

}  // namespace

at::Tensor residual_dropout_norm_fused(const at::Tensor& x,
                                       const std::optional<at::Tensor>& bias,
                                       const at::Tensor& residual,
                                       const NormWeights& norm,
                                       ElementDropout dropout) {
  const at::Tensor some_bias = bias.value_or(at::Tensor());
  return ResidualDropoutNormNode::apply(
      x, bias, residual, norm.weight, norm.bias, norm.eps, dropout.p, dropout.seed,
      any_requires_grad({&x, &residual, &norm.weight, &norm.bias, &some_bias}));
}

NormedSum residual_norm_fused(const at::Tensor& x,
                              const at::Tensor& residual,
                              const std::optional<at::Tensor>& factors,
                              const NormWeights& norm) {
  const variable_list out =
      ResidualNormNode::apply(x, residual, factors, norm.weight, norm.bias, norm.eps,
                              any_requires_grad({&x, &residual, &norm.weight, &norm.bias}));
  return {out[0], out[1]};
}

}  // namespace elliptical::ops
