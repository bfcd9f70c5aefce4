// SPDX-License-Identifier: MIT
//
// The layers of pre_norm.h as autograd functions over the kernels, one node each. Arguments were
// checked by the public functions.
#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <torch/csrc/autograd/custom_function.h>

#include "elliptical/kernels/gelu.h"
#include "elliptical/ops/chunks_impl.h"
#include "elliptical/ops/fused_function_impl.h"
#include "elliptical/ops/parallel_impl.h"
#include "elliptical/ops/pre_norm_impl.h"

namespace elliptical::ops {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

const float* read(const at::Tensor& t) { return t.const_data_ptr<float>(); }
float* write(const at::Tensor& t) { return t.mutable_data_ptr<float>(); }

kernels::Rows rows_of(const at::Tensor& x) {
  const int64_t C = x.size(-1);
  return {C == 0 ? 0 : x.numel() / C, C};
}

kernels::RowFactors row_factors(const at::Tensor& factors, int64_t rows) {
  if (!factors.defined() || factors.numel() == 0) return {};
  return {read(factors), rows / factors.numel()};
}

class ResidualNorm : public torch::autograd::Function<ResidualNorm> {
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
         .weight = read(w),
         .norm_bias = read(nb),
         .eps = eps,
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
    const at::Tensor d_weight = at::empty_like(w), d_norm_bias = at::empty_like(w);
    kernels::residual_dropout_norm_backward(size,
                                            {.dy = read(dy),
                                             .normalised = read(normalised),
                                             .rstd = read(rstd),
                                             .weight = read(w),
                                             .row_factors = row_factors(f, size.rows),
                                             .d_sum = d_sum.defined() ? read(d_sum) : nullptr,
                                             .dx = f.defined() ? write(dx) : nullptr,
                                             .d_residual = write(d_residual),
                                             .d_weight = write(d_weight),
                                             .d_norm_bias = write(d_norm_bias)},
                                            torch_parallel_for);
    return {dx, d_residual, {}, d_weight, d_norm_bias, {}, {}};
  }
};

class GeluFeedForward : public torch::autograd::Function<GeluFeedForward> {
 public:
  static at::Tensor forward(AutogradContext* ctx,
                            const at::Tensor& x,
                            const at::Tensor& up,
                            const at::Tensor& up_bias,
                            const at::Tensor& down,
                            const at::Tensor& down_bias,
                            bool need_gradient) {
    const int64_t C = x.size(-1), F = up.size(0);
    const at::Tensor rows = x.reshape({C == 0 ? 0 : -1, C}), bias = up_bias.contiguous();
    const int64_t T = rows.size(0);
    const at::Tensor y = at::empty({T, C}, rows.options());
    // z = x up^T + up_bias is what the backward needs; gelu(z) lives for a chunk.
    const at::Tensor z = at::empty({need_gradient ? T : 0, F}, rows.options());
    const at::Tensor buffer = at::empty({std::min(T, chunk_rows(F)), F}, rows.options());
    for_chunks(T, F, [&](int64_t begin, int64_t count) {
      at::Tensor hidden = buffer.narrow(0, 0, count);
      at::Tensor product = need_gradient ? z.narrow(0, begin, count) : hidden;
      at::mm_out(product, rows.narrow(0, begin, count), up.t());
      kernels::bias_gelu_forward({count, F}, write(product), read(bias), need_gradient,
                                 write(hidden), torch_parallel_for);
      at::Tensor out = y.narrow(0, begin, count);
      at::addmm_out(out, down_bias, hidden, down.t());
    });
    ctx->save_for_backward({rows, up, down, z});
    ctx->saved_data["shape"] = x.sizes();
    return y.view(x.sizes());
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& above) {
    refuse_second_derivative("gelu_feed_forward");
    const variable_list saved = ctx->get_saved_variables();
    const at::Tensor &x = saved[0], &up = saved[1], &down = saved[2], &z = saved[3];
    const int64_t T = x.size(0), C = x.size(1), F = up.size(0);
    const at::Tensor dy = above[0].reshape({T, C});
    at::Tensor dx = at::empty({T, C}, x.options()), d_up = at::empty_like(up),
               d_down = at::empty_like(down), d_bias = at::zeros({F}, x.options());
    const int64_t rows = std::min(T, chunk_rows(F));
    const at::Tensor gradients = at::empty({rows, F}, x.options()),
                     values = at::empty({rows, F}, x.options()),
                     chunk_bias = at::empty({F}, x.options());
    if (T == 0) d_up.zero_(), d_down.zero_();
    for_chunks(T, F, [&](int64_t begin, int64_t count) {
      const at::Tensor above_rows = dy.narrow(0, begin, count);
      at::Tensor dz = gradients.narrow(0, 0, count);
      const at::Tensor hidden = values.narrow(0, 0, count);
      const auto add_product = [&](at::Tensor& sum, const at::Tensor& a, const at::Tensor& b) {
        begin == 0 ? at::mm_out(sum, a, b) : at::addmm_out(sum, sum, a, b);
      };
      at::mm_out(dz, above_rows, down);
      kernels::bias_gelu_backward({count, F}, read(dz), read(z.narrow(0, begin, count)),
                                  write(hidden), write(dz), write(chunk_bias), torch_parallel_for);
      d_bias.add_(chunk_bias);
      add_product(d_down, above_rows.t(), hidden);
      add_product(d_up, dz.t(), x.narrow(0, begin, count));
      at::Tensor dx_rows = dx.narrow(0, begin, count);
      at::mm_out(dx_rows, dz, up);
    });
    return {dx.view(ctx->saved_data["shape"].toIntVector()), d_up, d_bias, d_down, dy.sum(0), {}};
  }
};

bool any_requires_grad(std::initializer_list<const at::Tensor*> tensors) {
  if (!at::GradMode::is_enabled()) return false;
  for (const at::Tensor* tensor : tensors) {
    if (tensor->requires_grad()) return true;
  }
  return false;
}

}  // namespace

NormedSum residual_norm_fused(const at::Tensor& x,
                              const at::Tensor& residual,
                              const std::optional<at::Tensor>& factors,
                              const at::Tensor& weight,
                              const at::Tensor& norm_bias,
                              double eps) {
  const variable_list out =
      ResidualNorm::apply(x, residual, factors, weight, norm_bias, eps,
                          any_requires_grad({&x, &residual, &weight, &norm_bias}));
  return {out[0], out[1]};
}

at::Tensor gelu_feed_forward_fused(const at::Tensor& x,
                                   const at::Tensor& up,
                                   const at::Tensor& up_bias,
                                   const at::Tensor& down,
                                   const at::Tensor& down_bias) {
  return GeluFeedForward::apply(x, up, up_bias, down, down_bias,
                                any_requires_grad({&x, &up, &up_bias, &down, &down_bias}));
}

}  // namespace elliptical::ops
