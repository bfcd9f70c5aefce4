// SPDX-License-Identifier: MIT
//
// What the dispatcher knows of this room: `torch.ops.elliptical.*` in Python after
// `torch.ops.load_library`. Layers, optimizer and losses are functions for C++ alone and not here.
//
// Ops that come with a function are made of other ops (CompositeImplicitAutograd), so autograd,
// torch.compile, fake tensors and functional transforms need no code of ours: attention, metric and
// three that the Python package calls for itself. Those without one are the leaves: a kernel, a
// meta kernel and, where gradients pass through them, an autograd kernel each, registered below.
#include <torch/library.h>

#include "elliptical/ops/attention_fused_impl.h"
#include "elliptical/ops/attention_impl.h"
#include "elliptical/ops/masks_impl.h"
#include "elliptical/ops/metric_impl.h"
#include "elliptical/ops/prefix_metric.h"

namespace elliptical::ops {
namespace {

using AttentionKernel = FromFlat<AttentionSignature<AttentionResult>, AttentionArgs, attention_op>;
using MetricKernel = FromFlat<MetricSignature, MetricArgs, metric_op>;
using ExplainKernel =
    FromFlat<AttentionSignature<std::vector<std::string>>, AttentionArgs, explain_op>;

}  // namespace

TORCH_LIBRARY(elliptical, m) {
  // q (B, H, N, D), k (B, Hk, M, D), v (B, Hk, M, Dv) -> out (B, H, N, Dv), lse (B, H, N).
  // dropout_seed is a tensor with one int64, so that a compiled graph does not bake it in. Without
  // need_lse, lse has no elements.
  m.def(
      "attention(Tensor q, Tensor k, Tensor v, Tensor? metric=None, Tensor? attn_mask=None, "
      "Tensor? key_lengths=None, Tensor? dropout_seed=None, *, bool is_causal=False, "
      "float? scale=None, float dropout_p=0.0, bool need_lse=True) -> (Tensor out, Tensor lse)",
      TORCH_FN(AttentionKernel::call));
  m.def(
      "_explain(Tensor q, Tensor k, Tensor v, Tensor? metric=None, Tensor? attn_mask=None, "
      "Tensor? key_lengths=None, Tensor? dropout_seed=None, *, bool is_causal=False, "
      "float? scale=None, float dropout_p=0.0, bool need_lse=True) -> str[]",
      TORCH_FN(ExplainKernel::call));
  // v, v_prev (B, H, N, D) -> (B, H, 1, D), or (B, H, N, D) for scope "prefix". See metric.h.
  m.def(
      "metric(Tensor v, Tensor? v_prev=None, Tensor? q=None, Tensor? k=None, Tensor? q_prev=None, "
      "Tensor? lengths=None, Tensor? temperature=None, *, str estimator=\"difference\", "
      "str scope=\"sequence\", str scaling=\"max\", float delta=1.0, bool differentiable=False, "
      "float attenuation=0.5, float? step=None, bool is_causal=False, float? scale=None, "
      "int query_stride=16, float low=0.0, int seed=0, float value=1.0, "
      "Generator? generator=None) -> Tensor",
      TORCH_FN(MetricKernel::call));
  m.def("_metric_estimators() -> str[]", TORCH_FN(metric_estimators_op));
  m.def(
      "_prefix_metric(Tensor v, Tensor v_prev, Tensor? sum, int count, str scaling, float delta) "
      "-> (Tensor rows, Tensor sum)",
      TORCH_FN(prefix_metric_op));

  m.def(
      "_attention_forward(Tensor q, Tensor k, Tensor v, Tensor? metric, Tensor? attn_mask, "
      "Tensor? key_lengths, Tensor? dropout_seed, bool is_causal, float scale, float dropout_p) "
      "-> (Tensor out, Tensor lse, Tensor row_max, Tensor row_sum)");
  m.def(
      "_attention_backward(Tensor d_out, Tensor? d_lse, Tensor q, Tensor k, Tensor v, "
      "Tensor? metric, Tensor? attn_mask, Tensor? key_lengths, Tensor? dropout_seed, Tensor out, "
      "Tensor row_max, Tensor row_sum, bool is_causal, float scale, float dropout_p, "
      "bool need_d_metric) -> (Tensor dq, Tensor dk, Tensor dv, Tensor d_metric)");
  m.def("_valid_tokens(Tensor lengths, SymInt size, str subject, str size_name) -> Tensor");
  m.def("_dropout_keep(Tensor seed, Tensor logits, float dropout_p) -> Tensor");
  m.def(
      "_metric_difference(Tensor v, Tensor v_prev, Tensor? lengths, bool prefix, str scaling, "
      "float delta) -> Tensor");
  m.def("_fixed_uniform(Tensor v, int seed) -> Tensor");
}

TORCH_LIBRARY_IMPL(elliptical, CPU, m) {
  m.impl("_attention_forward", TORCH_FN(ForwardKernel<fused_forward_cpu>::call));
  m.impl("_attention_backward", TORCH_FN(BackwardKernel<fused_backward_cpu>::call));
  m.impl("_metric_difference", TORCH_FN(metric_difference_cpu));
}

TORCH_LIBRARY_IMPL(elliptical, CompositeExplicitAutograd, m) {
  m.impl("_valid_tokens", TORCH_FN(valid_tokens_kernel));
  m.impl("_dropout_keep", TORCH_FN(dropout_keep_kernel));
  m.impl("_fixed_uniform", TORCH_FN(fixed_uniform_kernel));
}

TORCH_LIBRARY_IMPL(elliptical, Meta, m) {
  m.impl("_attention_forward", TORCH_FN(ForwardKernel<fused_forward_meta>::call));
  m.impl("_attention_backward", TORCH_FN(BackwardKernel<fused_backward_meta>::call));
  m.impl("_valid_tokens", TORCH_FN(valid_tokens_meta));
  m.impl("_dropout_keep", TORCH_FN(dropout_keep_meta));
  m.impl("_metric_difference", TORCH_FN(metric_difference_meta));
  m.impl("_fixed_uniform", TORCH_FN(fixed_uniform_meta));
}

TORCH_LIBRARY_IMPL(elliptical, Autograd, m) {
  m.impl("_attention_forward", TORCH_FN(ForwardKernel<fused_forward_autograd>::call));
  m.impl("_attention_backward", TORCH_FN(BackwardKernel<fused_backward_autograd>::call));
  // These read no more than shapes of what may require grad.
  m.impl("_dropout_keep", torch::CppFunction::makeFallthrough());
  m.impl("_fixed_uniform", torch::CppFunction::makeFallthrough());
}

}  // namespace elliptical::ops
