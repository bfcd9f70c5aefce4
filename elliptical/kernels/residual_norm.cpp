// SPDX-License-Identifier: MIT
//
// Tasks are blocks of rows (row_tasks-inl.h). Factors of dropout are drawn a row at a time into a
// buffer that stays in the first-level cache.
#include "elliptical/kernels/residual_norm.h"

#include <algorithm>

#include "elliptical/kernels/simd_impl.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "elliptical/kernels/residual_norm.cpp"
#include "hwy/foreach_target.h"
// After foreach_target, which re-includes this file:
#include "elliptical/kernels/arena.h"
#include "elliptical/kernels/norm-inl.h"
#include "elliptical/kernels/philox-inl.h"
#include "elliptical/kernels/row_tasks-inl.h"
#include "elliptical/kernels/vectors-inl.h"

HWY_BEFORE_NAMESPACE();
namespace elliptical::kernels {
namespace HWY_NAMESPACE {
namespace {

/// s = residual + factor * drop(x + bias) of one row.
HWY_INLINE void ResidualRow(
    const NormInputs<float>& in, int64_t r, int64_t C, float* buffer, float* HWY_RESTRICT s) {
  const Tag tag;
  const float* x = in.x + r * C;
  const float* residual = in.residual + r * C;
  const float* factor =
      in.dropout.active() ? ElementFactors(in.dropout, r * C, C, buffer) : nullptr;
  const Vec whole_row = hn::Set(tag, in.row_factors.of(r));
  ForVectors(C, [&](int64_t, auto load, auto store) HWY_ATTR {
    Vec value = load(x);
    if (in.bias) value = hn::Add(value, load(in.bias));
    const Vec keep = factor ? load(factor) : whole_row;
    store(hn::MulAdd(value, keep, load(residual)), s);
  });
}

void ResidualDropoutNorm(Rows size,
                         const NormInputs<float>& in,
                         float* y,
                         float* normalised,
                         float* rstd,
                         const ParallelFor& parallel_for) {
  const RowTasks tasks(size);
  const int64_t C = size.C;
  parallel_for(tasks.count, [&](int64_t first, int64_t last) {
    float *buffer, *scratch;
    const Arena arena({{&buffer, in.dropout.active() ? ElementFactorsRoom(C) : 0}, {&scratch, C}});
    for (int64_t r = tasks.begin(first); r < tasks.end(last - 1); ++r) {
      float* s = in.sum ? in.sum + r * C : scratch;
      ResidualRow(in, r, C, buffer, s);
      const float inverse =
          NormRow(s, C, in.norm, y + r * C, normalised ? normalised + r * C : nullptr);
      if (rstd) rstd[r] = inverse;
    }
  });
}

void ResidualDropoutNormGradient(Rows size,
                                 const NormGradients<float>& grad,
                                 const ParallelFor& parallel_for) {
  const RowTasks tasks(size);
  const int64_t C = size.C;
  float* partial;  // (tasks, 3, C): sums of d_weight, d_norm_bias, d_bias
  const Arena arena({{&partial, tasks.count * 3 * C}});
  parallel_for(tasks.count, [&](int64_t first, int64_t last) {
    const Tag tag;
    float* buffer;
    const Arena own({{&buffer, grad.dropout.active() ? ElementFactorsRoom(C) : 0}});
    for (int64_t task = first; task < last; ++task) {
      float* sum_weight = partial + task * 3 * C;
      float* sum_norm_bias = sum_weight + C;
      float* sum_bias = sum_norm_bias + C;
      std::fill_n(sum_weight, 3 * C, 0.0f);
      for (int64_t r = tasks.begin(task); r < tasks.end(task); ++r) {
        const float* dy = grad.dy + r * C;
        const float* n = grad.normalised + r * C;
        const float* factor =
            grad.dropout.active() ? ElementFactors(grad.dropout, r * C, C, buffer) : nullptr;
        // With g = dy * weight: ds = rstd * (g - mean(g) - n * mean(g n)).
        Vec sum_g = hn::Zero(tag), sum_gn = hn::Zero(tag);
        ForVectors(C, [&](int64_t, auto load, auto store) HWY_ATTR {
          const Vec above = load(dy), value = load(n);
          const Vec g = hn::Mul(above, load(grad.weight));
          sum_g = hn::Add(sum_g, g);
          sum_gn = hn::MulAdd(g, value, sum_gn);
          if (grad.d_weight) {
            store(hn::MulAdd(above, value, load(sum_weight)), sum_weight);
            store(hn::Add(above, load(sum_norm_bias)), sum_norm_bias);
          }
        });
        const float per_row = 1.0f / static_cast<float>(C);
        const Vec mean_g = hn::Set(tag, hn::GetLane(hn::SumOfLanes(tag, sum_g)) * per_row);
        const Vec mean_gn = hn::Set(tag, hn::GetLane(hn::SumOfLanes(tag, sum_gn)) * per_row);
        const Vec unit = hn::Set(tag, grad.rstd[r]);
        const Vec whole_row = hn::Set(tag, grad.row_factors.of(r));
        const float* d_sum = grad.d_sum ? grad.d_sum + r * C : nullptr;
        ForVectors(C, [&](int64_t, auto load, auto store) HWY_ATTR {
          const Vec g = hn::Sub(hn::Mul(load(dy), load(grad.weight)), mean_g);
          const Vec through = hn::NegMulAdd(load(n), mean_gn, g);
          const Vec ds = d_sum ? hn::MulAdd(unit, through, load(d_sum)) : hn::Mul(unit, through);
          const Vec dx = hn::Mul(ds, factor ? load(factor) : whole_row);
          store(ds, grad.d_residual + r * C);
          if (grad.dx) store(dx, grad.dx + r * C);
          if (grad.d_bias) store(hn::Add(load(sum_bias), dx), sum_bias);
        });
      }
    }
  });
  if (grad.d_weight) {
    SumTasks(partial, tasks.count, 3 * C, C, grad.d_weight, parallel_for);
    SumTasks(partial + C, tasks.count, 3 * C, C, grad.d_norm_bias, parallel_for);
  }
  if (grad.d_bias) SumTasks(partial + 2 * C, tasks.count, 3 * C, C, grad.d_bias, parallel_for);
}

}  // namespace
// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace elliptical::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace elliptical::kernels {

HWY_EXPORT(ResidualDropoutNorm);
HWY_EXPORT(ResidualDropoutNormGradient);

void residual_dropout_norm_forward(Rows size,
                                   const NormInputs<float>& in,
                                   float* y,
                                   float* normalised,
                                   float* rstd,
                                   const ParallelFor& parallel_for) {
  HWY_DISPATCH_TABLE(ResidualDropoutNorm)
  [simd_chosen().GetIndex()](size, in, y, normalised, rstd, parallel_for);
}

void residual_dropout_norm_backward(Rows size,
                                    const NormGradients<float>& grad,
                                    const ParallelFor& parallel_for) {
  HWY_DISPATCH_TABLE(ResidualDropoutNormGradient)
  [simd_chosen().GetIndex()](size, grad, parallel_for);
}

}  // namespace elliptical::kernels
#endif  // HWY_ONCE
