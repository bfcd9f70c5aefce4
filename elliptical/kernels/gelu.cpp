// SPDX-License-Identifier: MIT
//
// For a = |z|, Phi(-a) = exp(-a^2 / 2) p(t) with t = 1 / (1 + 0.28 a) and a polynomial p of degree
// 6, fitted so that the absolute error of Phi is below 1.1e-8 before rounding.
#include "elliptical/kernels/gelu.h"

#include <algorithm>

#include "elliptical/kernels/simd_impl.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "elliptical/kernels/gelu.cpp"
#include "hwy/foreach_target.h"
// After foreach_target, which re-includes this file:
#include "elliptical/kernels/arena.h"
#include "elliptical/kernels/exp2-inl.h"
#include "elliptical/kernels/row_tasks-inl.h"

HWY_BEFORE_NAMESPACE();
namespace elliptical::kernels {
namespace HWY_NAMESPACE {
namespace {

struct Gaussian {
  Vec cumulative;  ///< Phi(z)
  Vec bell;        ///< exp(-z^2 / 2)
};

HWY_INLINE Gaussian GaussianAt(Vec z) {
  const Tag tag;
  const Vec one = hn::Set(tag, 1.0f);
  const Vec a = hn::Abs(z);
  const Vec bell = Exp2(hn::Mul(hn::Mul(a, a), hn::Set(tag, -0.72134752f)));  // -log2(e) / 2
  const Vec t = hn::Div(one, hn::MulAdd(hn::Set(tag, 0.28f), a, one));
  Vec p = hn::MulAdd(hn::Set(tag, -0.107803091f), t, hn::Set(tag, 0.39964959f));
  p = hn::MulAdd(p, t, hn::Set(tag, -0.256833464f));
  p = hn::MulAdd(p, t, hn::Set(tag, 0.29025057f));
  p = hn::MulAdd(p, t, hn::Set(tag, 0.0546694882f));
  p = hn::MulAdd(p, t, hn::Set(tag, 0.120604835f));
  p = hn::MulAdd(p, t, hn::Set(tag, -0.000537954271f));
  const Vec tail = hn::Mul(p, bell);
  const auto is_negative = hn::Lt(z, hn::Zero(tag));
  return {hn::IfThenElse(is_negative, tail, hn::Sub(one, tail)), bell};
}

void BiasGelu(Rows size,
              float* x,
              const float* bias,
              bool keep_z,
              float* y,
              const ParallelFor& parallel_for) {
  const RowTasks tasks(size);
  const int64_t C = size.C;
  parallel_for(tasks.count, [&](int64_t first, int64_t last) {
    for (int64_t r = tasks.begin(first); r < tasks.end(last - 1); ++r) {
      float* in = x + r * C;
      ForVectors(C, [&](int64_t, auto load, auto store) HWY_ATTR {
        const Vec z = hn::Add(load(in), load(bias));
        if (keep_z) store(z, in);
        store(hn::Mul(z, GaussianAt(z).cumulative), y + r * C);
      });
    }
  });
}

void BiasGeluGradient(Rows size,
                      const float* dy,
                      const float* z,
                      float* y,
                      float* dz,
                      float* d_bias,
                      const ParallelFor& parallel_for) {
  const RowTasks tasks(size);
  const int64_t C = size.C;
  float* partial;
  const Arena arena({{&partial, tasks.count * C}});
  parallel_for(tasks.count, [&](int64_t first, int64_t last) {
    const Tag tag;
    const Vec inverse_root = hn::Set(tag, 0.39894228f);  // 1 / sqrt(2 pi)
    for (int64_t task = first; task < last; ++task) {
      float* sum = partial + task * C;
      std::fill_n(sum, C, 0.0f);
      for (int64_t r = tasks.begin(task); r < tasks.end(task); ++r) {
        ForVectors(C, [&](int64_t, auto load, auto store) HWY_ATTR {
          const Vec at = load(z + r * C);
          const Gaussian gaussian = GaussianAt(at);
          const Vec slope =
              hn::MulAdd(hn::Mul(at, inverse_root), gaussian.bell, gaussian.cumulative);
          const Vec g = hn::Mul(load(dy + r * C), slope);
          store(hn::Mul(at, gaussian.cumulative), y + r * C);
          store(g, dz + r * C);
          store(hn::Add(load(sum), g), sum);
        });
      }
    }
  });
  SumTasks(partial, tasks.count, C, C, d_bias, parallel_for);
}

}  // namespace
// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace elliptical::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace elliptical::kernels {

HWY_EXPORT(BiasGelu);
HWY_EXPORT(BiasGeluGradient);

void bias_gelu_forward(Rows size,
                       float* x,
                       const float* bias,
                       bool keep_z,
                       float* y,
                       const ParallelFor& parallel_for) {
  HWY_DISPATCH_TABLE(BiasGelu)
  [simd_chosen().GetIndex()](size, x, bias, keep_z, y, parallel_for);
}

void bias_gelu_backward(Rows size,
                        const float* dy,
                        const float* z,
                        float* y,
                        float* dz,
                        float* d_bias,
                        const ParallelFor& parallel_for) {
  HWY_DISPATCH_TABLE(BiasGeluGradient)
  [simd_chosen().GetIndex()](size, dy, z, y, dz, d_bias, parallel_for);
}

}  // namespace elliptical::kernels
#endif  // HWY_ONCE
