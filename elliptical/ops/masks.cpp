// SPDX-License-Identifier: MIT
#include <ATen/Functions.h>
#include <ATen/Parallel.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <c10/util/Exception.h>

#include "elliptical/kernels/dropout.h"
#include "elliptical/ops/masks_impl.h"

namespace elliptical::ops {

void check_lengths(const at::Tensor& lengths,
                   int64_t max,
                   std::string_view subject,
                   std::string_view size_name) {
  const at::Tensor values = lengths.cpu().contiguous();
  const int64_t* length = values.const_data_ptr<int64_t>();
  for (int64_t b = 0; b < values.numel(); ++b) {
    TORCH_CHECK_VALUE(0 <= length[b] && length[b] <= max, subject, " must be between 0 and ",
                      size_name, " = ", max, ", got ", length[b], " at index ", b);
  }
}

at::Tensor valid_tokens(const at::Tensor& lengths,
                        const c10::SymInt& size,
                        const std::string& subject,
                        const std::string& size_name) {
  static const auto op =
      c10::Dispatcher::singleton()
          .findSchemaOrThrow("elliptical::_valid_tokens", "")
          .typed<at::Tensor(const at::Tensor&, c10::SymInt, std::string_view, std::string_view)>();
  return op.call(lengths, size, subject, size_name);
}

at::Tensor dropout_keep(const at::Tensor& seed, const at::Tensor& logits, double dropout_p) {
  static const auto op = c10::Dispatcher::singleton()
                             .findSchemaOrThrow("elliptical::_dropout_keep", "")
                             .typed<decltype(dropout_keep_kernel)>();
  return op.call(seed, logits, dropout_p);
}

at::Tensor valid_tokens_kernel(const at::Tensor& lengths,
                               int64_t size,
                               std::string_view subject,
                               std::string_view size_name) {
  check_lengths(lengths, size, subject, size_name);
  return at::arange(size, lengths.options()).lt(lengths.unsqueeze(1));
}

at::Tensor valid_tokens_meta(const at::Tensor& lengths,
                             c10::SymInt size,
                             std::string_view,
                             std::string_view) {
  return at::empty_symint({lengths.sym_size(0), std::move(size)},
                          lengths.options().dtype(at::kBool));
}

at::Tensor dropout_keep_kernel(const at::Tensor& seed, const at::Tensor& logits, double dropout_p) {
  const kernels::Dropout dropout(dropout_p, static_cast<uint64_t>(seed.item<int64_t>()));
  const int64_t N = logits.size(2), M = logits.size(3);
  const at::Tensor keep = at::empty(logits.sizes(), at::kBool);
  bool* keeps = keep.mutable_data_ptr<bool>();
  at::parallel_for(0, logits.size(0) * logits.size(1) * N, 1, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      for (int64_t j = 0; j < M; ++j) keeps[row * M + j] = dropout.keeps(row / N, row % N, j);
    }
  });
  return keep.to(logits.device());
}

at::Tensor dropout_keep_meta(const at::Tensor&, const at::Tensor& logits, double) {
  return at::empty_symint(logits.sym_sizes(), logits.options().dtype(at::kBool));
}

}  // namespace elliptical::ops
