// SPDX-License-Identifier: MIT
#include <ATen/Functions.h>
#include <torch/csrc/autograd/custom_function.h>

#include "elliptical/kernels/fourier.h"
#include "elliptical/ops/fourier_attention_impl.h"
#include "elliptical/ops/fused_layer_impl.h"
#include "elliptical/ops/parallel_impl.h"

namespace elliptical::ops {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

kernels::FourierInputs<float> kernel_inputs(const at::Tensor& a,
                                            const at::Tensor& b,
                                            const at::Tensor& v,
                                            const at::Tensor& key_lengths,
                                            const AutogradContext& ctx) {
  const auto& saved = ctx.saved_data;
  kernels::FourierInputs<float> in{.B = a.size(0),
                                   .H = a.size(1),
                                   .N = a.size(2),
                                   .M = b.size(2),
                                   .D = a.size(3),
                                   .Dv = v.size(3),
                                   .a = a.const_data_ptr<float>(),
                                   .b = b.const_data_ptr<float>(),
                                   .v = v.const_data_ptr<float>(),
                                   .is_causal = saved.at("is_causal").toBool(),
                                   .epsilon = saved.at("epsilon").toDouble()};
  if (key_lengths.defined()) in.key_lengths = key_lengths.const_data_ptr<int64_t>();
  const double p = saved.at("dropout_p").toDouble();
  if (p > 0) in.dropout = {p, static_cast<uint64_t>(saved.at("dropout_seed").toInt())};
  return in;
}

class FourierNode : public torch::autograd::Function<FourierNode> {
 public:
  static at::Tensor forward(AutogradContext* ctx,
                            const at::Tensor& a_in,
                            const at::Tensor& b_in,
                            const at::Tensor& v_in,
                            const std::optional<at::Tensor>& key_lengths,
                            bool is_causal,
                            double epsilon,
                            double dropout_p,
                            int64_t dropout_seed) {
    ctx->saved_data["is_causal"] = is_causal;
    ctx->saved_data["epsilon"] = epsilon;
    ctx->saved_data["dropout_p"] = dropout_p;
    ctx->saved_data["dropout_seed"] = dropout_seed;
    const at::Tensor lengths = key_lengths ? key_lengths->contiguous() : at::Tensor();
    const at::Tensor a = a_in.contiguous(), b = b_in.contiguous(), v = v_in.contiguous();
    at::Tensor o = at::empty({a.size(0), a.size(1), a.size(2), v.size(3)}, a.options());
    at::Tensor row_max = at::empty({a.size(0), a.size(1), a.size(2)}, a.options());
    at::Tensor row_sum = at::empty_like(row_max);
    kernels::fourier_forward(kernel_inputs(a, b, v, lengths, *ctx),
                             {.o = o.mutable_data_ptr<float>(),
                              .row_max = row_max.mutable_data_ptr<float>(),
                              .row_sum = row_sum.mutable_data_ptr<float>()},
                             torch_parallel_for);
    ctx->save_for_backward({a, b, v, lengths, o, row_max, row_sum});
    return o;
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& d_outputs) {
    refuse_second_derivative("fourier_attention");
    const variable_list t = ctx->get_saved_variables();
    const at::Tensor d_o = d_outputs[0].contiguous();
    at::Tensor d_a = at::empty_like(t[0]), d_b = at::empty_like(t[1]), d_v = at::empty_like(t[2]);
    kernels::fourier_backward(kernel_inputs(t[0], t[1], t[2], t[3], *ctx),
                              {.o = t[4].const_data_ptr<float>(),
                               .row_max = t[5].const_data_ptr<float>(),
                               .row_sum = t[6].const_data_ptr<float>(),
                               .d_o = d_o.const_data_ptr<float>(),
                               .d_a = d_a.mutable_data_ptr<float>(),
                               .d_b = d_b.mutable_data_ptr<float>(),
                               .d_v = d_v.mutable_data_ptr<float>()},
                              torch_parallel_for);
    const at::Tensor none;
    return {d_a, d_b, d_v, none, none, none, none, none};
  }
};

}  // namespace

at::Tensor fourier_attention_fused(const at::Tensor& a,
                                   const at::Tensor& b,
                                   const at::Tensor& v,
                                   const FourierOptions& options) {
  return FourierNode::apply(a, b, v, options.key_lengths, options.is_causal, options.epsilon,
                            options.dropout_p, options.dropout_seed);
}

}  // namespace elliptical::ops
