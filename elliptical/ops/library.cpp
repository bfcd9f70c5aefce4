// SPDX-License-Identifier: MIT
//
// Every op of the library in one place: `torch.ops.elliptical.*` in Python after
// `torch.ops.load_library`. Public ops are made of other ops (CompositeImplicitAutograd), so
// autograd, torch.compile, fake tensors and functional transforms need no code of ours; ops whose
// name starts with an underscore are the leaves, with a kernel, a meta kernel and, if
// differentiable, an autograd kernel each.
#include <torch/library.h>

#include "elliptical/ops/attention_fused_impl.h"
#include "elliptical/ops/attention_impl.h"
#include "elliptical/ops/masks_impl.h"

namespace elliptical::ops {

TORCH_LIBRARY(elliptical, m) {
  // q (B, H, N, D), k (B, Hk, M, D), v (B, Hk, M, Dv) -> out (B, H, N, Dv), lse (B, H, N).
  // dropout_seed is a tensor with one int64, so that a compiled graph does not bake it in. Without
  // need_lse, lse has no elements.
  m.def(
      "attention(Tensor q, Tensor k, Tensor v, Tensor? metric=None, Tensor? attn_mask=None, "
      "Tensor? key_lengths=None, Tensor? dropout_seed=None, *, bool is_causal=False, "
      "float? scale=None, float dropout_p=0.0, bool need_lse=True) -> (Tensor out, Tensor lse)",
      TORCH_FN(attention_op));
  m.def(
      "_explain(Tensor q, Tensor k, Tensor v, Tensor? metric=None, Tensor? attn_mask=None, "
      "Tensor? key_lengths=None, Tensor? dropout_seed=None, *, bool is_causal=False, "
      "float? scale=None, float dropout_p=0.0, bool need_lse=True) -> str[]",
      TORCH_FN(explain_op));

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
}

TORCH_LIBRARY_IMPL(elliptical, CPU, m) {
  m.impl("_attention_forward", TORCH_FN(fused_forward_cpu));
  m.impl("_attention_backward", TORCH_FN(fused_backward_cpu));
}

TORCH_LIBRARY_IMPL(elliptical, CompositeExplicitAutograd, m) {
  m.impl("_valid_tokens", TORCH_FN(valid_tokens_kernel));
  m.impl("_dropout_keep", TORCH_FN(dropout_keep_kernel));
}

TORCH_LIBRARY_IMPL(elliptical, Meta, m) {
  m.impl("_attention_forward", TORCH_FN(fused_forward_meta));
  m.impl("_attention_backward", TORCH_FN(fused_backward_meta));
  m.impl("_valid_tokens", TORCH_FN(valid_tokens_meta));
  m.impl("_dropout_keep", TORCH_FN(dropout_keep_meta));
}

TORCH_LIBRARY_IMPL(elliptical, Autograd, m) {
  m.impl("_attention_forward", TORCH_FN(fused_forward_autograd));
  m.impl("_attention_backward", TORCH_FN(fused_backward_autograd));
}

}  // namespace elliptical::ops
