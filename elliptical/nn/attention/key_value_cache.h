// SPDX-License-Identifier: MIT
//
// Keys and values of a stream. Storage doubles when it is full, so that appending a token costs
// the same on average however long the stream is, and what is handed out is a view.
#pragma once

#include <ATen/core/Tensor.h>

#include <tuple>

namespace elliptical::nn {

class KeyValueCache {
 public:
  /// Appends (B, H, T, D) each; returns all keys and all values so far, (B, H, M, D), as views that
  /// the next call may invalidate.
  std::tuple<at::Tensor, at::Tensor> append(const at::Tensor& k, const at::Tensor& v);

  int64_t size() const { return size_; }
  int64_t capacity() const { return k_.defined() ? k_.size(2) : 0; }

 private:
  at::Tensor k_, v_;  ///< (B, H, capacity, D)
  int64_t size_ = 0;
};

}  // namespace elliptical::nn
