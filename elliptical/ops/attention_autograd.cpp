// SPDX-License-Identifier: MIT
//
// The derivative of the fused kernel: `_attention_forward` saves the maximum and the sum of each
// row,
// `_attention_backward` recomputes the probabilities from them. There is no second derivative;
// asking for it is refused with a sentence that says what to do.
#include <ATen/Functions.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <torch/csrc/autograd/custom_function.h>

#include "elliptical/ops/attention_fused_impl.h"
#include "elliptical/ops/attention_impl.h"

namespace elliptical::ops {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

/// An absent optional tensor is saved as an undefined one.
at::Tensor saved(const OptionalTensor& t) { return t.value_or(at::Tensor()); }
OptionalTensor restored(const at::Tensor& t) {
  return t.defined() ? OptionalTensor(t) : std::nullopt;
}

class ForwardNode : public torch::autograd::Function<ForwardNode> {
 public:
  static variable_list forward(AutogradContext* ctx,
                               const at::Tensor& q,
                               const at::Tensor& k,
                               const at::Tensor& v,
                               const OptionalTensor& metric,
                               const OptionalTensor& attn_mask,
                               const OptionalTensor& key_lengths,
                               const OptionalTensor& dropout_seed,
                               bool is_causal,
                               double scale,
                               double dropout_p) {
    const at::AutoDispatchBelowADInplaceOrView guard;
    auto [out, lse, row_max, row_sum] = call_fused_forward(
        q, k, v, metric, attn_mask, key_lengths, dropout_seed, is_causal, scale, dropout_p);
    ctx->save_for_backward({q, k, v, saved(metric), saved(attn_mask), saved(key_lengths),
                            saved(dropout_seed), out, row_max, row_sum});
    ctx->saved_data["is_causal"] = is_causal;
    ctx->saved_data["scale"] = scale;
    ctx->saved_data["dropout_p"] = dropout_p;
    ctx->mark_non_differentiable({row_max, row_sum});
    ctx->set_materialize_grads(false);
    return {out, lse, row_max, row_sum};
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& d_outputs) {
    constexpr size_t kMetric = 3;  // position among the tensors of forward
    const variable_list t = ctx->get_saved_variables();
    const at::Tensor& out = t[7];
    const at::Tensor d_out = d_outputs[0].defined() ? d_outputs[0] : at::zeros_like(out);
    const bool need_d_metric = t[kMetric].defined() && ctx->needs_input_grad(kMetric);
    auto [dq, dk, dv, d_metric] = call_fused_backward(
        d_out, restored(d_outputs[1]), t[0], t[1], t[2], restored(t[kMetric]), restored(t[4]),
        restored(t[5]), restored(t[6]), out, t[8], t[9], ctx->saved_data["is_causal"].toBool(),
        ctx->saved_data["scale"].toDouble(), ctx->saved_data["dropout_p"].toDouble(),
        need_d_metric);
    const at::Tensor none;
    return {dq, dk, dv, need_d_metric ? d_metric : none, none, none, none, none, none, none};
  }
};

/// Carries the gradients; its own derivative does not exist.
class BackwardNode : public torch::autograd::Function<BackwardNode> {
 public:
  static variable_list forward(AutogradContext*,
                               const at::Tensor& d_out,
                               const OptionalTensor& d_lse,
                               const at::Tensor& q,
                               const at::Tensor& k,
                               const at::Tensor& v,
                               const OptionalTensor& metric,
                               const OptionalTensor& attn_mask,
                               const OptionalTensor& key_lengths,
                               const OptionalTensor& dropout_seed,
                               const at::Tensor& out,
                               const at::Tensor& row_max,
                               const at::Tensor& row_sum,
                               bool is_causal,
                               double scale,
                               double dropout_p,
                               bool need_d_metric) {
    const at::AutoDispatchBelowADInplaceOrView guard;
    auto [dq, dk, dv, d_metric] =
        call_fused_backward(d_out, d_lse, q, k, v, metric, attn_mask, key_lengths, dropout_seed,
                            out, row_max, row_sum, is_causal, scale, dropout_p, need_d_metric);
    return {dq, dk, dv, d_metric};
  }

  static variable_list backward(AutogradContext*, const variable_list&) {
    TORCH_CHECK_NOT_IMPLEMENTED(
        false,
        "attention: the fused path has no second derivative (set ELLIPTICAL_ATTENTION=composite in "
        "the environment, or use double, to take the composite path, which has)");
    return {};
  }
};

}  // namespace

FusedForward fused_forward_autograd(const at::Tensor& q,
                                    const at::Tensor& k,
                                    const at::Tensor& v,
                                    const OptionalTensor& metric,
                                    const OptionalTensor& attn_mask,
                                    const OptionalTensor& key_lengths,
                                    const OptionalTensor& dropout_seed,
                                    bool is_causal,
                                    double scale,
                                    double dropout_p) {
  const variable_list r = ForwardNode::apply(q, k, v, metric, attn_mask, key_lengths, dropout_seed,
                                             is_causal, scale, dropout_p);
  return {r[0], r[1], r[2], r[3]};
}

FusedBackward fused_backward_autograd(const at::Tensor& d_out,
                                      const OptionalTensor& d_lse,
                                      const at::Tensor& q,
                                      const at::Tensor& k,
                                      const at::Tensor& v,
                                      const OptionalTensor& metric,
                                      const OptionalTensor& attn_mask,
                                      const OptionalTensor& key_lengths,
                                      const OptionalTensor& dropout_seed,
                                      const at::Tensor& out,
                                      const at::Tensor& row_max,
                                      const at::Tensor& row_sum,
                                      bool is_causal,
                                      double scale,
                                      double dropout_p,
                                      bool need_d_metric) {
  const variable_list r =
      BackwardNode::apply(d_out, d_lse, q, k, v, metric, attn_mask, key_lengths, dropout_seed, out,
                          row_max, row_sum, is_causal, scale, dropout_p, need_d_metric);
  return {r[0], r[1], r[2], r[3]};
}

AttentionResult attention_fused(const AttentionArgs& args) {
  auto [out, lse, row_max, row_sum] = call_fused_forward(
      args.q, args.k, args.v, args.metric, args.attn_mask, args.key_lengths, args.dropout_seed,
      args.is_causal, args.scale_or_default(), args.dropout_p);
  return {out, lse};
}

}  // namespace elliptical::ops
