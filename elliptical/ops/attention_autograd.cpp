// SPDX-License-Identifier: MIT
//
// The derivative of the fused kernel: `_attention_forward` saves the maximum and the sum of each
// row, `_attention_backward` recomputes the probabilities from them. There is no second derivative;
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
  template <class... Flat>
  static variable_list forward(AutogradContext* ctx, const Flat&... flat) {
    const ForwardArgs args{flat...};
    const at::AutoDispatchBelowADInplaceOrView guard;
    const FusedForward result = call_fused_forward(args);
    keep_for_backward(ctx, args, result);
    const auto& [out, lse, row_max, row_sum] = result;
    ctx->mark_non_differentiable({row_max, row_sum});
    return {out, lse, row_max, row_sum};
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& d_outputs) {
    constexpr size_t kMetric = 3;  // position among the tensors of forward
    const bool has_metric = ctx->get_saved_variables()[kMetric].defined();
    const bool need_d_metric = has_metric && ctx->needs_input_grad(kMetric);
    auto [dq, dk, dv, d_metric] =
        call_fused_backward(kept_for_backward(ctx, d_outputs[0], d_outputs[1], need_d_metric));
    const at::Tensor none;
    return {dq, dk, dv, need_d_metric ? d_metric : none, none, none, none, none, none, none};
  }
};

/// Carries the gradients; its own derivative does not exist.
class BackwardNode : public torch::autograd::Function<BackwardNode> {
 public:
  template <class... Flat>
  static variable_list forward(AutogradContext*, const Flat&... flat) {
    const at::AutoDispatchBelowADInplaceOrView guard;
    auto [dq, dk, dv, d_metric] = call_fused_backward(BackwardArgs{flat...});
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

void keep_for_backward(AutogradContext* ctx, const ForwardArgs& args, const FusedForward& result) {
  const auto& [out, lse, row_max, row_sum] = result;
  ctx->save_for_backward({args.q, args.k, args.v, saved(args.metric), saved(args.attn_mask),
                          saved(args.key_lengths), saved(args.dropout_seed), out, row_max,
                          row_sum});
  ctx->saved_data["is_causal"] = args.is_causal;
  ctx->saved_data["scale"] = args.scale;
  ctx->saved_data["dropout_p"] = args.dropout_p;
  ctx->set_materialize_grads(false);
}

BackwardArgs kept_for_backward(AutogradContext* ctx,
                               const at::Tensor& d_out,
                               const at::Tensor& d_lse,
                               bool need_d_metric) {
  const variable_list t = ctx->get_saved_variables();
  const at::Tensor& out = t[7];
  return {.d_out = d_out.defined() ? d_out : at::zeros_like(out),
          .d_lse = restored(d_lse),
          .q = t[0],
          .k = t[1],
          .v = t[2],
          .metric = restored(t[3]),
          .attn_mask = restored(t[4]),
          .key_lengths = restored(t[5]),
          .dropout_seed = restored(t[6]),
          .out = out,
          .row_max = t[8],
          .row_sum = t[9],
          .is_causal = ctx->saved_data["is_causal"].toBool(),
          .scale = ctx->saved_data["scale"].toDouble(),
          .dropout_p = ctx->saved_data["dropout_p"].toDouble(),
          .need_d_metric = need_d_metric};
}

FusedForward fused_forward_autograd(const ForwardArgs& args) {
  const variable_list r =
      call_flat(args, [](const auto&... flat) { return ForwardNode::apply(flat...); });
  return {r[0], r[1], r[2], r[3]};
}

FusedBackward fused_backward_autograd(const BackwardArgs& args) {
  const variable_list r =
      call_flat(args, [](const auto&... flat) { return BackwardNode::apply(flat...); });
  return {r[0], r[1], r[2], r[3]};
}

AttentionResult attention_fused(const AttentionArgs& args) {
  auto [out, lse, row_max, row_sum] = call_fused_forward({.q = args.q,
                                                          .k = args.k,
                                                          .v = args.v,
                                                          .metric = args.metric,
                                                          .attn_mask = args.attn_mask,
                                                          .key_lengths = args.key_lengths,
                                                          .dropout_seed = args.dropout_seed,
                                                          .is_causal = args.is_causal,
                                                          .scale = args.scale_or_default(),
                                                          .dropout_p = args.dropout_p});
  return {out, lse};
}

}  // namespace elliptical::ops
