// SPDX-License-Identifier: MIT
//
// Checks that the layers' functions share. Each throws c10::ValueError or c10::TypeError:
// `<op>: <argument> must <what must hold>, got <what>`.
#pragma once

#include <ATen/core/Tensor.h>

#include <string_view>

namespace elliptical::ops {

void check_floating(const char* op, const char* name, const at::Tensor& x);

/// x is (..., C) floating point.
void check_rows(const char* op, const at::Tensor& x);

/// `tensor` has the type and the device of `reference`.
void check_like(const char* op,
                const char* name,
                const at::Tensor& tensor,
                const char* reference_name,
                const at::Tensor& reference);

/// `tensor` is one row of x.
void check_row(const char* op, const char* name, const at::Tensor& tensor, const at::Tensor& x);

/// Each element of the int64 tensor `indices` is in [0, size). `subject` opens the message,
/// `size_name` names `size`: ("embed: tokens", "V").
void check_indices(const at::Tensor& indices,
                   int64_t size,
                   std::string_view subject,
                   std::string_view size_name);

}  // namespace elliptical::ops
