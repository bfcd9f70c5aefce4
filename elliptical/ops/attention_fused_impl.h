// SPDX-License-Identifier: MIT
//
// `elliptical::_attention_forward` and `elliptical::_attention_backward`: the kernels of
// elliptical/kernels/attention.h as dispatcher ops. Arguments were checked by the public op.
#pragma once

#include <ATen/core/Tensor.h>

#include <optional>
#include <tuple>

namespace elliptical::ops {

/// (out, lse, row_max, row_sum)
using FusedForward = std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor>;
/// (dq, dk, dv, d_metric); d_metric has no elements when it was not asked for
using FusedBackward = std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor>;

using OptionalTensor = std::optional<at::Tensor>;

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

FusedForwardSignature fused_forward_cpu, fused_forward_meta, fused_forward_autograd;
FusedBackwardSignature fused_backward_cpu, fused_backward_meta, fused_backward_autograd;

/// The ops themselves, through the dispatcher.
FusedForwardSignature call_fused_forward;
FusedBackwardSignature call_fused_backward;

}  // namespace elliptical::ops
