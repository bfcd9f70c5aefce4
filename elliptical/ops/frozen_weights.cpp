// SPDX-License-Identifier: MIT
#include "elliptical/ops/frozen_weights.h"

#include <ATen/Functions.h>

#include <map>
#include <memory>
#include <tuple>

#include "elliptical/kernels/product.h"
#include "elliptical/ops/frozen_weights_impl.h"
#include "elliptical/ops/parallel_impl.h"

namespace elliptical::ops {
namespace {

struct Kept {
  at::Tensor matrix;  ///< its memory can not become another weight's
  int64_t version;
  at::Tensor packed;
};

/// Address, sizes and strides.
using Place = std::tuple<const void*, int64_t, int64_t, int64_t, int64_t>;
using KeptWeights = std::map<Place, Kept>;

/// Empty unless weights are frozen.
thread_local std::unique_ptr<KeptWeights> kept_weights;

at::Tensor pack(const at::Tensor& matrix) {
  const int64_t K = matrix.size(0), N = matrix.size(1);
  const at::Tensor own =
      matrix.stride(0) == 1 || matrix.stride(1) == 1 ? matrix : matrix.contiguous();
  const at::Tensor result = at::empty({kernels::packed_size(K, N)}, matrix.options());
  kernels::pack(K, N, {own.const_data_ptr<float>(), own.stride(0), own.stride(1)},
                result.mutable_data_ptr<float>(), torch_parallel_for);
  return result;
}

}  // namespace

FrozenWeights::FrozenWeights() : is_outermost_(!kept_weights) {
  if (is_outermost_) kept_weights = std::make_unique<KeptWeights>();
}

FrozenWeights::~FrozenWeights() {
  if (is_outermost_) kept_weights.reset();
}

at::Tensor packed(const at::Tensor& matrix) {
  // Tensors made in inference mode do not count their changes.
  if (!kept_weights || matrix.is_inference()) return pack(matrix);
  const Place place{matrix.const_data_ptr(), matrix.size(0), matrix.size(1), matrix.stride(0),
                    matrix.stride(1)};
  Kept& kept = (*kept_weights)[place];
  const auto version = static_cast<int64_t>(matrix._version());
  if (!kept.packed.defined() || kept.version != version) {
    kept = {matrix.detach(), version, pack(matrix)};
  }
  return kept.packed;
}

}  // namespace elliptical::ops
