// SPDX-License-Identifier: MIT
//
// The feed-forward layer as one autograd node. Rows are taken in chunks: the product that makes a
// chunk of the hidden layer, what is done to its elements and the product that uses it follow each
// other while the chunk is in the cache, forward and backward. Only the hidden layer itself is
// kept.
#include <ATen/Functions.h>
#include <torch/csrc/autograd/custom_function.h>

#include "elliptical/kernels/feedforward.h"
#include "elliptical/ops/chunks_impl.h"
#include "elliptical/ops/feed_forward_impl.h"
#include "elliptical/ops/fused_function_impl.h"
#include "elliptical/ops/parallel_impl.h"

namespace elliptical::ops {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

class FeedForward : public torch::autograd::Function<FeedForward> {
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
    ctx->saved_data["p"] = p;
    ctx->saved_data["seed"] = seed;
    ctx->saved_data["shape"] = x.sizes();
    return y.view(x.sizes());
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& above) {
    refuse_second_derivative("feed_forward");
    const variable_list saved = ctx->get_saved_variables();
    const at::Tensor &x = saved[0], &up = saved[1], &down = saved[2], &hidden = saved[3];
    const int64_t T = x.size(0), C = x.size(1), F = up.size(0);
    const kernels::ElementDropout rule =
        dropout_rule({ctx->saved_data["p"].toDouble(), ctx->saved_data["seed"].toInt()});
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

at::Tensor feed_forward_fused(const at::Tensor& x,
                              const at::Tensor& up,
                              const at::Tensor& up_bias,
                              const at::Tensor& down,
                              ElementDropout dropout) {
  const bool need_gradient =
      at::GradMode::is_enabled() &&
      (x.requires_grad() || up.requires_grad() || up_bias.requires_grad() || down.requires_grad());
  return FeedForward::apply(x, up, up_bias, down, dropout.p, dropout.seed, need_gradient);
}

}  // namespace elliptical::ops
