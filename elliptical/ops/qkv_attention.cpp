// SPDX-License-Identifier: MIT
#include "elliptical/ops/qkv_attention.h"

#include <ATen/Functions.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <torch/csrc/autograd/custom_function.h>

#include "elliptical/ops/attention_fused_impl.h"
#include "elliptical/ops/attention_impl.h"
#include "elliptical/ops/fused_layer_impl.h"
#include "elliptical/ops/shape_text_impl.h"

namespace elliptical::ops {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

constexpr int64_t kParts = 3;

/// (B, N, 3 H D) -> (B, N, 3, H, D)
at::Tensor parts_of(const at::Tensor& qkv, int64_t num_heads) {
  return qkv.view(
      {qkv.size(0), qkv.size(1), kParts, num_heads, qkv.size(2) / (kParts * num_heads)});
}

/// One of q, k, v: (B, N, 3, H, D) -> (B, H, N, D).
at::Tensor part_of(const at::Tensor& all, int64_t part) {
  return all.select(2, part).transpose(1, 2);
}

class SplitHeads : public torch::autograd::Function<SplitHeads> {
 public:
  static variable_list forward(AutogradContext* ctx, const at::Tensor& qkv, int64_t num_heads) {
    ctx->set_materialize_grads(false);
    ctx->saved_data["shape"] = qkv.sizes();
    ctx->saved_data["num_heads"] = num_heads;
    const at::Tensor all = parts_of(qkv, num_heads);
    return {all, part_of(all, 0), part_of(all, 1), part_of(all, 2)};
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& above) {
    refuse_second_derivative("split_heads");
    const auto shape = ctx->saved_data["shape"].toIntVector();
    // The gradient of `all` comes from qkv_attention, which made it for this place.
    const bool is_there = above[0].defined();
    const at::Tensor d_all =
        is_there ? above[0]
                 : parts_of(at::empty(shape, at::kFloat), ctx->saved_data["num_heads"].toInt());
    for (int64_t part = 0; part < kParts; ++part) {
      const at::Tensor& d_part = above[static_cast<size_t>(1 + part)];
      at::Tensor target = part_of(d_all, part);
      if (d_part.defined()) {
        is_there ? target.add_(d_part) : target.copy_(d_part);
      } else if (!is_there) {
        target.zero_();
      }
    }
    return {d_all.view(shape), at::Tensor()};
  }
};

class QkvNode : public torch::autograd::Function<QkvNode> {
 public:
  static at::Tensor forward(AutogradContext* ctx,
                            const at::Tensor& all,
                            const OptionalTensor& metric,
                            const OptionalTensor& attn_mask,
                            const OptionalTensor& key_lengths,
                            const OptionalTensor& dropout_seed,
                            bool is_causal,
                            double scale,
                            double dropout_p,
                            int64_t num_queries) {
    const at::AutoDispatchBelowADInplaceOrView guard;
    const ForwardArgs args{.q = part_of(all, 0).narrow(2, 0, num_queries),
                           .k = part_of(all, 1),
                           .v = part_of(all, 2),
                           .metric = metric,
                           .attn_mask = attn_mask,
                           .key_lengths = key_lengths,
                           .dropout_seed = dropout_seed,
                           .is_causal = is_causal,
                           .scale = scale,
                           .dropout_p = dropout_p};
    const FusedForward result = fused_forward_cpu(args);
    keep_for_backward(ctx, args, result);
    ctx->saved_data["shape"] = all.sizes();
    return std::get<0>(result);
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& above) {
    constexpr size_t kMetric = 1;  // position among the tensors of forward
    refuse_second_derivative("attention");
    const bool has_metric = ctx->get_saved_variables()[3].defined();
    const bool need_d_metric = has_metric && ctx->needs_input_grad(kMetric);
    const BackwardArgs args = kept_for_backward(ctx, above[0], {}, need_d_metric);
    const at::Tensor d_all = at::empty(ctx->saved_data["shape"].toIntVector(), args.q.options());
    const at::Tensor dq = part_of(d_all, 0);
    const int64_t num_queries = args.q.size(2);
    dq.narrow(2, num_queries, dq.size(2) - num_queries).zero_();
    const at::Tensor d_metric = fused_backward_into(args, dq.narrow(2, 0, num_queries),
                                                    part_of(d_all, 1), part_of(d_all, 2));
    const at::Tensor none;
    return {d_all, need_d_metric ? d_metric : none, none, none, none, none, none, none, none};
  }
};

}  // namespace

QkvHeads split_heads(const at::Tensor& qkv, int64_t num_heads) {
  TORCH_CHECK_VALUE(qkv.dim() == 3 && num_heads > 0 && qkv.size(2) % (kParts * num_heads) == 0,
                    "split_heads: qkv must be (B, N, 3 H D) with H = ", num_heads, ", got ",
                    shape_text(qkv));
  const at::Tensor rows = qkv.contiguous();
  if (fused_layer_applies(rows)) {
    const variable_list parts = SplitHeads::apply(rows, num_heads);
    return {parts[0], parts[1], parts[2], parts[3]};
  }
  const at::Tensor all = parts_of(rows, num_heads);
  return {all, part_of(all, 0), part_of(all, 1), part_of(all, 2)};
}

at::Tensor qkv_attention(const QkvHeads& heads,
                         const std::optional<at::Tensor>& metric,
                         const AttentionOptions& options,
                         std::optional<int64_t> num_queries) {
  const int64_t N = heads.q.size(2), kept = num_queries.value_or(N);
  TORCH_CHECK_VALUE(kept >= 0 && kept <= N, "qkv_attention: num_queries must be in [0, N] = [0, ",
                    N, "], got ", kept);
  const at::Tensor q = heads.q.narrow(2, 0, kept);
  const AttentionArgs args = seeded_args(q, heads.k, heads.v, metric, options, /*need_lse=*/false);
  check_attention(args);
  if (!fused_applies(args)) return std::get<0>(attention_op(args));
  return QkvNode::apply(heads.all, args.metric, args.attn_mask, args.key_lengths, args.dropout_seed,
                        args.is_causal, args.scale_or_default(), args.dropout_p, kept);
}

}  // namespace elliptical::ops
