// SPDX-License-Identifier: MIT
//
// The feed-forward layer as one autograd node. Rows are taken in chunks: the product that makes a
// chunk of the hidden layer, what is done to its elements and the product that uses it follow each
// other while the chunk is in the cache, forward and backward. Only the hidden layer itself is
// kept. What is done to its elements is a node of its own, too, for those who bring the products.
#include <ATen/Functions.h>
#include <torch/csrc/autograd/custom_function.h>

#include "elliptical/kernels/bias_relu_dropout.h"
#include "elliptical/ops/chunks_impl.h"
#include "elliptical/ops/dropout_impl.h"
#include "elliptical/ops/feed_forward_impl.h"
#include "elliptical/ops/fused_layer_impl.h"
#include "elliptical/ops/parallel_impl.h"
#include "elliptical/ops/tensor_memory_impl.h"

namespace elliptical::ops {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

class BiasReluDropoutNode : public torch::autograd::Function<BiasReluDropoutNode> {
 public:
  static at::Tensor forward(
      AutogradContext* ctx, const at::Tensor& x, const at::Tensor& bias, double p, int64_t seed) {
    const at::Tensor x_rows = x.contiguous(), b = bias.contiguous();
    at::Tensor y = at::empty_like(x_rows);
    kernels::bias_relu_dropout_forward(rows_of(x), read(x_rows), read(b), dropout_rule({p, seed}),
                                       write(y), torch_parallel_for);
    ctx->save_for_backward({y});
    keep_dropout(ctx, {p, seed});
    return y;
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& above) {
    refuse_second_derivative("bias_relu_dropout");
    const at::Tensor y = ctx->get_saved_variables()[0], dy = above[0].contiguous();
    const at::Tensor dx = at::empty_like(y), d_bias = at::empty({y.size(-1)}, y.options());
    kernels::bias_relu_dropout_backward(rows_of(y), read(dy), read(y), kept_dropout(ctx), write(dx),
                                        write(d_bias), torch_parallel_for);
    return {dx, d_bias, {}, {}};
  }
};

class FeedForwardNode : public torch::autograd::Function<FeedForwardNode> {
 public:
  static at::Tensor forward(AutogradContext* ctx,
                            const at::Tensor& x,
                            const at::Tensor& up,
                            const at::Tensor& up_bias,
                            const at::Tensor& down,
                            double p,
                            int64_t seed,
                            bool need_gradient) {
    const int64_t C = x.size(-1), F = up.size(0);
    const at::Tensor rows = x.reshape({C == 0 ? 0 : -1, C}), bias = up_bias.contiguous();
    const int64_t T = rows.size(0);
    const kernels::ElementDropout rule = dropout_rule({p, seed});
    const at::Tensor hidden =
        at::empty({need_gradient ? T : std::min(T, chunk_rows(F)), F}, rows.options());
    const at::Tensor y = at::empty({T, C}, rows.options());
    for_chunks(T, F, [&](int64_t begin, int64_t count) {
      at::Tensor h = hidden.narrow(0, need_gradient ? begin : 0, count);
      at::mm_out(h, rows.narrow(0, begin, count), up.t());
      float* values = h.mutable_data_ptr<float>();
      kernels::bias_relu_dropout_forward({count, F}, values, bias.const_data_ptr<float>(),
                                         rule.from(begin * F), values, torch_parallel_for);
      at::Tensor out = y.narrow(0, begin, count);
      at::mm_out(out, h, down.t());
    });
    if (need_gradient) ctx->save_for_backward({rows, up, down, hidden});
    keep_dropout(ctx, {p, seed});
    ctx->saved_data["shape"] = x.sizes();
    return y.view(x.sizes());
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& above) {
    refuse_second_derivative("feed_forward");
    const variable_list saved = ctx->get_saved_variables();
    const at::Tensor &x = saved[0], &up = saved[1], &down = saved[2], &hidden = saved[3];
    const int64_t T = x.size(0), C = x.size(1), F = up.size(0);
    const kernels::ElementDropout rule = kept_dropout(ctx);
    const at::Tensor dy = above[0].reshape({T, C});
    at::Tensor dx = at::empty({T, C}, x.options()), d_up = at::empty_like(up),
               d_down = at::empty_like(down), d_bias = at::zeros({F}, x.options());
    const at::Tensor buffer = at::empty({std::min(T, chunk_rows(F)), F}, x.options());
    const at::Tensor chunk_bias = at::empty({F}, x.options());
    if (T == 0) d_up.zero_(), d_down.zero_();
    for_chunks(T, F, [&](int64_t begin, int64_t count) {
      const at::Tensor above_rows = dy.narrow(0, begin, count), h = hidden.narrow(0, begin, count);
      at::Tensor dh = buffer.narrow(0, 0, count);
      const auto add_product = [&](at::Tensor& sum, const at::Tensor& a, const at::Tensor& b) {
        begin == 0 ? at::mm_out(sum, a, b) : at::addmm_out(sum, sum, a, b);
      };
      add_product(d_down, above_rows.t(), h);
      at::mm_out(dh, above_rows, down);
      kernels::bias_relu_dropout_backward(
          {count, F}, dh.const_data_ptr<float>(), h.const_data_ptr<float>(), rule,
          dh.mutable_data_ptr<float>(), chunk_bias.mutable_data_ptr<float>(), torch_parallel_for);
      d_bias.add_(chunk_bias);
      add_product(d_up, dh.t(), x.narrow(0, begin, count));
      at::Tensor dx_rows = dx.narrow(0, begin, count);
      at::mm_out(dx_rows, dh, up);
    });
    return {dx.view(ctx->saved_data["shape"].toIntVector()), d_up, d_bias, d_down, {}, {}, {}};
  }
};

}  // namespace

at::Tensor bias_relu_dropout_fused(const at::Tensor& x,
                                   const at::Tensor& bias,
                                   ElementDropout dropout) {
  return BiasReluDropoutNode::apply(x, bias, dropout.p, dropout.seed);
}

at::Tensor feed_forward_fused(const at::Tensor& x,
                              const FeedForwardWeights& weights,
                              ElementDropout dropout) {
  const auto& [up, up_bias, down] = weights;
  return FeedForwardNode::apply(x, up, up_bias, down, dropout.p, dropout.seed,
                                any_requires_grad({&x, &up, &up_bias, &down}));
}

}  // namespace elliptical::ops
