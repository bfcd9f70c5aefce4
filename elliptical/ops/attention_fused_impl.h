// SPDX-License-Identifier: MIT
//
// `elliptical::_attention_forward` and `elliptical::_attention_backward`: the kernels of
// elliptical/kernels/attention.h as dispatcher ops. Arguments were checked by the public op.
#pragma once

#include <ATen/core/Tensor.h>

#include <optional>
#include <tuple>

#include "elliptical/ops/flat_arguments_impl.h"

namespace torch::autograd {
struct AutogradContext;
}

namespace elliptical::ops {

/// (out, lse, row_max, row_sum)
using FusedForward = std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor>;
/// (dq, dk, dv, d_metric); d_metric has no elements when it was not asked for
using FusedBackward = std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor>;

/// In the order of the schema, as in flat() and in the signature below.
struct ForwardArgs {
  at::Tensor q, k, v;
  OptionalTensor metric, attn_mask, key_lengths, dropout_seed;
  bool is_causal;
  double scale, dropout_p;

  auto flat() const {
    return std::tie(q, k, v, metric, attn_mask, key_lengths, dropout_seed, is_causal, scale,
                    dropout_p);
  }
};

struct BackwardArgs {
  at::Tensor d_out;
  OptionalTensor d_lse;
  at::Tensor q, k, v;
  OptionalTensor metric, attn_mask, key_lengths, dropout_seed;
  at::Tensor out, row_max, row_sum;
  bool is_causal;
  double scale, dropout_p;
  bool need_d_metric;

  auto flat() const {
    return std::tie(d_out, d_lse, q, k, v, metric, attn_mask, key_lengths, dropout_seed, out,
                    row_max, row_sum, is_causal, scale, dropout_p, need_d_metric);
  }
  ForwardArgs forward() const {
    return {q, k, v, metric, attn_mask, key_lengths, dropout_seed, is_causal, scale, dropout_p};
  }
};

using FusedForwardSignature = FusedForward(const at::Tensor& q,
                                           const at::Tensor& k,
                                           const at::Tensor& v,
                                           const OptionalTensor& metric,
                                           const OptionalTensor& attn_mask,
                                           const OptionalTensor& key_lengths,
                                           const OptionalTensor& dropout_seed,
                                           bool is_causal,
                                           double scale,
                                           double dropout_p);

using FusedBackwardSignature = FusedBackward(const at::Tensor& d_out,
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
                                             bool need_d_metric);

FusedForward fused_forward_cpu(const ForwardArgs& args);
FusedForward fused_forward_meta(const ForwardArgs& args);
FusedForward fused_forward_autograd(const ForwardArgs& args);
FusedBackward fused_backward_cpu(const BackwardArgs& args);
/// The same into memory of the caller's, rows together; returns d_metric.
at::Tensor fused_backward_into(const BackwardArgs& args,
                               const at::Tensor& dq,
                               const at::Tensor& dk,
                               const at::Tensor& dv);
FusedBackward fused_backward_meta(const BackwardArgs& args);
FusedBackward fused_backward_autograd(const BackwardArgs& args);

/// The same as kernels of the dispatcher.
template <auto Kernel>
using ForwardKernel = FromFlat<FusedForwardSignature, ForwardArgs, Kernel>;
template <auto Kernel>
using BackwardKernel = FromFlat<FusedBackwardSignature, BackwardArgs, Kernel>;

/// Keeps what the backward needs, and gives it back. The context is that of an autograd function
/// with gradients that are not materialized.
void keep_for_backward(torch::autograd::AutogradContext* ctx,
                       const ForwardArgs& args,
                       const FusedForward& result);
BackwardArgs kept_for_backward(torch::autograd::AutogradContext* ctx,
                               const at::Tensor& d_out,
                               const at::Tensor& d_lse,
                               bool need_d_metric);

/// The ops themselves, through the dispatcher.
FusedForward call_fused_forward(const ForwardArgs& args);
FusedBackward call_fused_backward(const BackwardArgs& args);

}  // namespace elliptical::ops
