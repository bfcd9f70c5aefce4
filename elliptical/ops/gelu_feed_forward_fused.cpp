// SPDX-License-Identifier: MIT
//
// The layer as one autograd node over the kernels of elliptical/kernels/gelu_mlp.h, and the half of
// a block around it, which has no gradient. Arguments were checked by the public functions.
#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <torch/csrc/autograd/custom_function.h>

#include "elliptical/kernels/gelu_mlp.h"
#include "elliptical/ops/chunks_impl.h"
#include "elliptical/ops/fused_layer_impl.h"
#include "elliptical/ops/gelu_feed_forward_impl.h"
#include "elliptical/ops/product_impl.h"
#include "elliptical/ops/tensor_memory_impl.h"

namespace elliptical::ops {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

class GeluFeedForwardNode : public torch::autograd::Function<GeluFeedForwardNode> {
 public:
  static at::Tensor forward(AutogradContext* ctx,
                            const at::Tensor& x,
                            const at::Tensor& up,
                            const at::Tensor& up_bias,
                            const at::Tensor& down,
                            const at::Tensor& down_bias,
                            bool need_gradient,
                            bool only_of_x) {
    const int64_t C = x.size(-1), F = up.size(0);
    const at::Tensor rows = x.reshape({-1, C}).contiguous(), bias = up_bias.contiguous(),
                     last_bias = down_bias.contiguous();
    const int64_t T = rows.size(0);
    const at::Tensor y = at::empty({T, C}, rows.options());
    // What the backward needs of z = x up^T + up_bias; gelu(z) lives for a block of rows.
    const at::Tensor kept = at::empty({need_gradient ? T : 0, F}, rows.options());
    const at::Tensor packed_up = packed(up.t()), packed_down = packed(down.t());
    kernels::gelu_mlp_forward({.rows = T,
                               .C = C,
                               .F = F,
                               .x = read(rows),
                               .up = read(packed_up),
                               .up_bias = read(bias),
                               .down = read(packed_down),
                               .down_bias = read(last_bias),
                               .z = need_gradient && !only_of_x ? write(kept) : nullptr,
                               .slope = need_gradient && only_of_x ? write(kept) : nullptr,
                               .y = write(y)},
                              torch_parallel_for);
    ctx->save_for_backward({rows, up, down, kept});
    ctx->saved_data["shape"] = x.sizes();
    ctx->saved_data["only_of_x"] = only_of_x;
    return y.view(x.sizes());
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& above) {
    refuse_second_derivative("gelu_feed_forward");
    const variable_list saved = ctx->get_saved_variables();
    const at::Tensor &x = saved[0], &up = saved[1], &down = saved[2], &kept = saved[3];
    const bool only_of_x =
        ctx->saved_data["only_of_x"].toBool();  // weights are frozen, as attacks do
    const int64_t T = x.size(0), C = x.size(1), F = up.size(0);
    const at::Tensor dy = above[0].reshape({T, C}).contiguous();
    const at::Tensor packed_up = packed(up), packed_down = packed(down);
    const at::Tensor dx = at::empty({T, C}, x.options());
    const auto layer = [&](int64_t begin, int64_t count, float* dz, float* hidden) {
      kernels::gelu_mlp_backward({.rows = count,
                                  .C = C,
                                  .F = F,
                                  .dy = read(dy) + begin * C,
                                  .z = only_of_x ? nullptr : read(kept) + begin * F,
                                  .slope = only_of_x ? read(kept) : nullptr,
                                  .down = read(packed_down),
                                  .up = read(packed_up),
                                  .dx = write(dx) + begin * C,
                                  .dz = dz,
                                  .hidden = hidden},
                                 torch_parallel_for);
    };
    const auto shape = ctx->saved_data["shape"].toIntVector();
    if (only_of_x || !needs_parameters(ctx)) {
      layer(0, T, nullptr, nullptr);
      return {dx.view(shape), {}, {}, {}, {}, {}, {}};
    }
    const at::Tensor d_up = at::empty({F, C}, x.options()), d_down = at::empty({C, F}, x.options()),
                     d_bias = at::zeros({F}, x.options());
    const int64_t rows = std::min(T, chunk_rows(F));
    const at::Tensor dz_buffer = at::empty({rows, F}, x.options()),
                     hidden_buffer = at::empty({rows, F}, x.options());
    for_chunks(T, F, [&](int64_t begin, int64_t count) {
      const at::Tensor dz = dz_buffer.narrow(0, 0, count),
                       hidden = hidden_buffer.narrow(0, 0, count);
      layer(begin, count, write(dz), write(hidden));
      gradient_product(dy.narrow(0, begin, count), hidden, d_down, begin > 0);
      gradient_product(dz, x.narrow(0, begin, count), d_up, begin > 0);
      d_bias.add_(column_sums(dz));
    });
    return {dx.view(shape), d_up, d_bias, d_down, column_sums(dy), {}, {}};
  }

 private:
  /// Whether anything but x is asked for in this backward.
  static bool needs_parameters(AutogradContext* ctx) {
    for (size_t i = 1; i <= 4; ++i) {
      if (ctx->needs_input_grad(i)) return true;
    }
    return false;
  }
};

}  // namespace

at::Tensor gelu_feed_forward_fused(const at::Tensor& x, const GeluFeedForwardWeights& weights) {
  const auto& [up, up_bias, down, down_bias] = weights;
  const bool of_weights = any_requires_grad({&up, &up_bias, &down, &down_bias});
  return GeluFeedForwardNode::apply(x, up, up_bias, down, down_bias,
                                    of_weights || any_requires_grad({&x}), !of_weights);
}

NormedSum normed_feed_forward_fused(const at::Tensor& x,
                                    const at::Tensor& residual,
                                    const NormWeights& before,
                                    const GeluFeedForwardWeights& weights,
                                    const NormWeights& after) {
  const at::AutoDispatchBelowADInplaceOrView guard;
  const at::Tensor x_rows = x.contiguous(), r = residual.contiguous(),
                   up_bias = weights.up_bias.contiguous(),
                   down_bias = weights.down_bias.contiguous(),
                   before_weight = before.weight.contiguous(),
                   before_bias = before.bias.contiguous(), after_weight = after.weight.contiguous(),
                   after_bias = after.bias.contiguous();
  const at::Tensor up = packed(weights.up.t()), down = packed(weights.down.t());
  const at::Tensor sum = at::empty_like(x_rows), normed = at::empty_like(x_rows);
  const kernels::Rows size = rows_of(x);
  const kernels::GeluMlpNorms norms{.residual = read(r),
                                    .before = {read(before_weight), read(before_bias), before.eps},
                                    .after = {read(after_weight), read(after_bias), after.eps},
                                    .normed = write(normed)};
  kernels::gelu_mlp_forward({.rows = size.rows,
                             .C = size.C,
                             .F = weights.up.size(0),
                             .x = read(x_rows),
                             .up = read(up),
                             .up_bias = read(up_bias),
                             .down = read(down),
                             .down_bias = read(down_bias),
                             .y = write(sum),
                             .norms = &norms},
                            torch_parallel_for);
  return {sum, normed};
}

}  // namespace elliptical::ops
