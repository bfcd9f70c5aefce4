// SPDX-License-Identifier: MIT
//
// The leaf ops of the metric: `_metric_difference` and `_fixed_uniform`.
#include <ATen/Functions.h>
#include <ATen/core/dispatch/Dispatcher.h>

#include <cmath>

#include "elliptical/kernels/dropout.h"
#include "elliptical/kernels/metric.h"
#include "elliptical/ops/masks_impl.h"
#include "elliptical/ops/metric_impl.h"
#include "elliptical/ops/parallel_impl.h"
#include "elliptical/ops/tensor_memory_impl.h"

namespace elliptical::ops {
namespace {

at::Tensor empty_metric(const at::Tensor& v, bool prefix) {
  return at::empty_symint(
      {v.sym_size(0), v.sym_size(1), prefix ? v.sym_size(2) : c10::SymInt(1), v.sym_size(3)},
      v.options());
}

}  // namespace

at::Tensor metric_difference_cpu(const at::Tensor& v,
                                 const at::Tensor& v_prev,
                                 const std::optional<at::Tensor>& lengths,
                                 bool prefix,
                                 std::string_view scaling,
                                 double delta) {
  if (lengths) check_lengths(*lengths, v.size(2), "metric: lengths", "N");
  const at::Tensor own_lengths = lengths ? lengths->contiguous() : at::Tensor();
  const at::Tensor metric = empty_metric(v, prefix);
  kernels::metric_difference({.B = v.size(0),
                              .H = v.size(1),
                              .N = v.size(2),
                              .D = v.size(3),
                              .v = read_view(v),
                              .v_prev = read_view(v_prev),
                              .lengths = lengths ? own_lengths.const_data_ptr<int64_t>() : nullptr,
                              .prefix = prefix,
                              .scaling = metric_scaling(scaling),
                              .delta = delta},
                             metric.mutable_data_ptr<float>(), torch_parallel_for);
  return metric;
}

at::Tensor metric_difference_meta(const at::Tensor& v,
                                  const at::Tensor&,
                                  const std::optional<at::Tensor>&,
                                  bool prefix,
                                  std::string_view,
                                  double) {
  return empty_metric(v, prefix);
}

at::Tensor call_metric_difference(const at::Tensor& v,
                                  const at::Tensor& v_prev,
                                  const std::optional<at::Tensor>& lengths,
                                  bool prefix,
                                  std::string_view scaling,
                                  double delta) {
  static const auto op = c10::Dispatcher::singleton()
                             .findSchemaOrThrow("elliptical::_metric_difference", "")
                             .typed<MetricDifferenceSignature>();
  return op.call(v, v_prev, lengths, prefix, scaling, delta);
}

at::Tensor fixed_uniform(const at::Tensor& v, int64_t seed) {
  static const auto op = c10::Dispatcher::singleton()
                             .findSchemaOrThrow("elliptical::_fixed_uniform", "")
                             .typed<decltype(fixed_uniform_kernel)>();
  return op.call(v, seed);
}

at::Tensor fixed_uniform_kernel(const at::Tensor& v, int64_t seed) {
  const auto bits = static_cast<uint64_t>(seed);
  const kernels::PhiloxKey key{static_cast<uint32_t>(bits), static_cast<uint32_t>(bits >> 32)};
  const int64_t H = v.size(1), D = v.size(3);
  const at::Tensor unit = at::empty({1, H, 1, D}, at::kDouble);
  double* number = unit.mutable_data_ptr<double>();
  for (int64_t h = 0; h < H; ++h) {
    for (int64_t i = 0; i < D; ++i) {
      const kernels::PhiloxCounter words =
          kernels::philox4x32({static_cast<uint32_t>(h), static_cast<uint32_t>(i), 0, 0}, key);
      // 24 bits: exact in float, so below 1 in every dtype the metric is computed in.
      *number++ = std::ldexp(static_cast<double>(words[0] >> 8), -24);
    }
  }
  return unit.to(v.options());
}

at::Tensor fixed_uniform_meta(const at::Tensor& v, int64_t) {
  return at::empty_symint({1, v.sym_size(1), 1, v.sym_size(3)}, v.options());
}

}  // namespace elliptical::ops
