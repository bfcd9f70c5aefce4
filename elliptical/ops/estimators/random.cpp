// SPDX-License-Identifier: MIT
//
// Controls that know nothing: uniform in [low, 1), then scaled. `random` is fresh in every call and
// differs between batch items and heads; `random_fixed` is a function of seed, head and coordinate.
#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/dispatch/Dispatcher.h>

#include <cmath>

#include "elliptical/kernels/dropout.h"
#include "elliptical/ops/estimators/steps_impl.h"
#include "elliptical/ops/metric_impl.h"

namespace elliptical::ops {
namespace estimators {
namespace {

/// From numbers in [0, 1).
at::Tensor uniform(const at::Tensor& unit,
                   const MetricInputs& inputs,
                   const MetricOptions& options) {
  const at::Tensor s = options.low + (1.0 - options.low) * unit;
  return repeat_rows(scale_rows(s, options.scaling), inputs, options);
}

}  // namespace

at::Tensor random(const MetricInputs& inputs, const MetricOptions& options) {
  const at::Tensor& v = inputs.v;
  const at::Tensor unit = at::rand_symint({v.sym_size(0), v.sym_size(1), 1, v.sym_size(3)},
                                          options.generator, v.options());
  return uniform(unit, inputs, options);
}

at::Tensor random_fixed(const MetricInputs& inputs, const MetricOptions& options) {
  static const auto op = c10::Dispatcher::singleton()
                             .findSchemaOrThrow("elliptical::_fixed_uniform", "")
                             .typed<decltype(fixed_uniform_kernel)>();
  return uniform(op.call(inputs.v, options.seed), inputs, options);
}

}  // namespace estimators

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
