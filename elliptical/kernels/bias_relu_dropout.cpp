// SPDX-License-Identifier: MIT
//
// Tasks are blocks of rows (row_tasks-inl.h). Factors of dropout are drawn a row at a time into a
// buffer that stays in the first-level cache.
#include "elliptical/kernels/bias_relu_dropout.h"

#include <algorithm>

#include "elliptical/kernels/simd_impl.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "elliptical/kernels/bias_relu_dropout.cpp"
#include "hwy/foreach_target.h"
// After foreach_target, which re-includes this file:
#include "elliptical/kernels/arena.h"
#include "elliptical/kernels/philox-inl.h"
#include "elliptical/kernels/row_tasks-inl.h"
#include "elliptical/kernels/vectors-inl.h"

HWY_BEFORE_NAMESPACE();
namespace elliptical::kernels {
namespace HWY_NAMESPACE {
namespace {

/// max(x, 0), NaN for NaN.
HWY_INLINE Vec Relu(Vec x) {
  const Tag tag;
  return hn::IfThenZeroElse(hn::Le(x, hn::Zero(tag)), x);
}

void BiasReluDropout(Rows size,
                     const float* x,
                     const float* bias,
                     const ElementDropout& dropout,
                     float* y,
                     const ParallelFor& parallel_for) {
  const RowTasks tasks(size);
  const int64_t C = size.C;
  parallel_for(tasks.count, [&](int64_t first, int64_t last) {
    float* buffer;
    const Arena arena({{&buffer, dropout.active() ? ElementFactorsRoom(C) : 0}});
    for (int64_t r = tasks.begin(first); r < tasks.end(last - 1); ++r) {
      const float* from = x + r * C;
      float* to = y + r * C;
      if (dropout.active()) {
        const float* factor = ElementFactors(dropout, r * C, C, buffer);
        ForVectors(C, [&](int64_t, auto load, auto store) HWY_ATTR {
          store(hn::Mul(Relu(hn::Add(load(from), load(bias))), load(factor)), to);
        });
      } else {
        ForVectors(C, [&](int64_t, auto load, auto store)
                          HWY_ATTR { store(Relu(hn::Add(load(from), load(bias))), to); });
      }
    }
  });
}

void BiasReluDropoutGradient(Rows size,
                             const float* dy,
                             const float* y,
                             const ElementDropout& dropout,
                             float* dx,
                             float* d_bias,
                             const ParallelFor& parallel_for) {
  const RowTasks tasks(size);
  const int64_t C = size.C;
  float* partial;
  const Arena arena({{&partial, tasks.count * C}});
  parallel_for(tasks.count, [&](int64_t first, int64_t last) {
    const Tag tag;
    const Vec scale = hn::Set(tag, static_cast<float>(dropout.keep_scale));
    for (int64_t task = first; task < last; ++task) {
      float* sum = partial + task * C;
      std::fill_n(sum, C, 0.0f);
      for (int64_t r = tasks.begin(task); r < tasks.end(task); ++r) {
        const float* above = dy + r * C;
        const float* out = y + r * C;
        float* to = dx + r * C;
        ForVectors(C, [&](int64_t, auto load, auto store) HWY_ATTR {
          const auto closed = hn::Le(load(out), hn::Zero(tag));
          const Vec g = hn::IfThenZeroElse(closed, hn::Mul(load(above), scale));
          store(g, to);
          store(hn::Add(load(sum), g), sum);
        });
      }
    }
  });
  if (d_bias) SumTasks(partial, tasks.count, C, C, d_bias, parallel_for);
}

}  // namespace
// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace elliptical::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace elliptical::kernels {

HWY_EXPORT(BiasReluDropout);
HWY_EXPORT(BiasReluDropoutGradient);

void bias_relu_dropout_forward(Rows size,
                               const float* x,
                               const float* bias,
                               const ElementDropout& dropout,
                               float* y,
                               const ParallelFor& parallel_for) {
  HWY_DISPATCH_TABLE(BiasReluDropout)
  [simd_chosen().GetIndex()](size, x, bias, dropout, y, parallel_for);
}

void bias_relu_dropout_backward(Rows size,
                                const float* dy,
                                const float* y,
                                const ElementDropout& dropout,
                                float* dx,
                                float* d_bias,
                                const ParallelFor& parallel_for) {
  HWY_DISPATCH_TABLE(BiasReluDropoutGradient)
  [simd_chosen().GetIndex()](size, dy, y, dropout, dx, d_bias, parallel_for);
}

}  // namespace elliptical::kernels
#endif  // HWY_ONCE
