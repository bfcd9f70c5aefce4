// SPDX-License-Identifier: MIT
//
// What the sources of the fused layers share. Checks throw c10::ValueError or c10::TypeError that
// names the argument, what it must be and what it is; `*_fused` take checked float32 on the CPU.
#pragma once

#include <string_view>

#include "elliptical/ops/feed_forward.h"

namespace elliptical::ops {

/// Of all fused layers: x is (..., C) floating point; a tensor has the type and device of another;
/// a tensor is one row of x; up (F, C), up_bias (F) and down (C, F) go with x.
void check_rows(const char* op, const at::Tensor& x);
void check_like(const char* op,
                const char* name,
                const at::Tensor& tensor,
                const char* reference_name,
                const at::Tensor& reference);
void check_row(const char* op, const char* name, const at::Tensor& tensor, const at::Tensor& x);
void check_feed_forward_maps(const char* op,
                             const at::Tensor& x,
                             const at::Tensor& up,
                             const at::Tensor& up_bias,
                             const at::Tensor& down);

void check_bias_relu_dropout(const at::Tensor& x, const at::Tensor& bias, ElementDropout dropout);
void check_residual_dropout_norm(const at::Tensor& x,
                                 const std::optional<at::Tensor>& bias,
                                 const at::Tensor& residual,
                                 const at::Tensor& weight,
                                 const at::Tensor& norm_bias,
                                 double eps,
                                 ElementDropout dropout);
void check_feed_forward(const at::Tensor& x,
                        const at::Tensor& up,
                        const at::Tensor& up_bias,
                        const at::Tensor& down,
                        ElementDropout dropout);
void check_embed(const at::Tensor& table,
                 const at::Tensor& tokens,
                 const at::Tensor& positions,
                 double scale,
                 ElementDropout dropout);
void check_element_dropout(const at::Tensor& x, ElementDropout dropout);

/// Each element of the int64 tensor `indices` is in [0, size). `subject` opens the message,
/// `size_name` names `size`: ("embed: tokens", "V").
void check_indices(const at::Tensor& indices,
                   int64_t size,
                   std::string_view subject,
                   std::string_view size_name);

at::Tensor bias_relu_dropout_fused(const at::Tensor& x,
                                   const at::Tensor& bias,
                                   ElementDropout dropout);
at::Tensor residual_dropout_norm_fused(const at::Tensor& x,
                                       const std::optional<at::Tensor>& bias,
                                       const at::Tensor& residual,
                                       const at::Tensor& weight,
                                       const at::Tensor& norm_bias,
                                       double eps,
                                       ElementDropout dropout);
at::Tensor feed_forward_fused(const at::Tensor& x,
                              const at::Tensor& up,
                              const at::Tensor& up_bias,
                              const at::Tensor& down,
                              ElementDropout dropout);
at::Tensor embed_fused(const at::Tensor& table,
                       const at::Tensor& tokens,
                       const at::Tensor& positions,
                       double scale,
                       ElementDropout dropout,
                       bool sparse_gradient);
at::Tensor element_dropout_fused(const at::Tensor& x, ElementDropout dropout);

}  // namespace elliptical::ops
