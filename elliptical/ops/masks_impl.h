// SPDX-License-Identifier: MIT
//
// Masks that depend on values (lengths, seeds) rather than shapes. They are dispatcher ops of their
// own, so that a traced graph calls them with the values of each run.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/SymIntArrayRef.h>

#include <string>
#include <string_view>

namespace elliptical::ops {

/// Throws unless each element of the int64 tensor `lengths` is in [0, max]. `subject` opens the
/// message, `size_name` names `max`: ("attention: key_lengths", "M").
void check_lengths(const at::Tensor& lengths,
                   int64_t max,
                   std::string_view subject,
                   std::string_view size_name);

/// `elliptical::_valid_tokens`: (B) int64 -> (B, size) bool, true before each length. Checks them.
at::Tensor valid_tokens(const at::Tensor& lengths,
                        const c10::SymInt& size,
                        const std::string& subject,
                        const std::string& size_name);

/// `elliptical::_dropout_keep`: which of the (B, H, N, M) logits the fused kernel keeps for this
/// seed.
at::Tensor dropout_keep(const at::Tensor& seed, const at::Tensor& logits, double dropout_p);

/// Kernels of these ops.
at::Tensor valid_tokens_kernel(const at::Tensor& lengths,
                               int64_t size,
                               std::string_view subject,
                               std::string_view size_name);
at::Tensor valid_tokens_meta(const at::Tensor& lengths,
                             c10::SymInt size,
                             std::string_view subject,
                             std::string_view size_name);
at::Tensor dropout_keep_kernel(const at::Tensor& seed, const at::Tensor& logits, double dropout_p);
at::Tensor dropout_keep_meta(const at::Tensor& seed, const at::Tensor& logits, double dropout_p);

}  // namespace elliptical::ops
