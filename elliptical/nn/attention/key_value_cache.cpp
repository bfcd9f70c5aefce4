// SPDX-License-Identifier: MIT
#include "elliptical/nn/attention/key_value_cache.h"

#include <torch/torch.h>

#include <algorithm>

namespace elliptical::nn {
namespace {

constexpr int64_t kFirstCapacity = 64;

at::Tensor grown(const at::Tensor& storage,
                 const at::Tensor& like,
                 int64_t size,
                 int64_t capacity) {
  const at::Tensor larger =
      at::empty({like.size(0), like.size(1), capacity, like.size(3)}, like.options());
  if (size > 0) larger.narrow(2, 0, size).copy_(storage.narrow(2, 0, size));
  return larger;
}

}  // namespace

std::tuple<at::Tensor, at::Tensor> KeyValueCache::append(const at::Tensor& k, const at::Tensor& v) {
  const int64_t num_new = k.size(2), needed = size_ + num_new;
  TORCH_CHECK_VALUE(!k_.defined() || (k_.size(0) == k.size(0) && k_.size(1) == k.size(1)),
                    "stream: tokens must continue the stream of ", k_.defined() ? k_.size(0) : 0,
                    " sequences, got ", k.size(0));
  if (needed > capacity()) {
    const int64_t larger = std::max({needed, 2 * capacity(), kFirstCapacity});
    k_ = grown(k_, k, size_, larger);
    v_ = grown(v_, v, size_, larger);
  }
  k_.narrow(2, size_, num_new).copy_(k);
  v_.narrow(2, size_, num_new).copy_(v);
  size_ = needed;
  return {k_.narrow(2, 0, size_), v_.narrow(2, 0, size_)};
}

}  // namespace elliptical::nn
