// SPDX-License-Identifier: MIT
//
// Layer norm of one row. Included once per SIMD target (Highway's -inl.h convention).

#if defined(ELLIPTICAL_KERNELS_NORM_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ELLIPTICAL_KERNELS_NORM_INL_H_
#undef ELLIPTICAL_KERNELS_NORM_INL_H_
#else
#define ELLIPTICAL_KERNELS_NORM_INL_H_
#endif

#include <cmath>
#include <cstdint>

#include "elliptical/kernels/residual_norm.h"
#include "elliptical/kernels/vectors-inl.h"

HWY_BEFORE_NAMESPACE();
namespace elliptical::kernels {
namespace HWY_NAMESPACE {

/// y = normalised * weight + bias, normalised = (s - mean(s)) * rstd, which is written unless null.
/// Returns rstd.
HWY_INLINE float NormRow(
    const float* s, int64_t C, const NormParameters<float>& norm, float* y, float* normalised) {
  const Tag tag;
  Vec sum = hn::Zero(tag);
  ForVectors(C, [&](int64_t, auto load, auto) HWY_ATTR { sum = hn::Add(sum, load(s)); });
  const float mean = hn::GetLane(hn::SumOfLanes(tag, sum)) / static_cast<float>(C);
  const Vec centre = hn::Set(tag, mean);
  Vec squares = hn::Zero(tag);
  ForVectors(C, [&](int64_t i, auto load, auto) HWY_ATTR {
    Vec d = hn::Sub(load(s), centre);
    if (i + kLanes > C) d = hn::IfThenElseZero(hn::FirstN(tag, static_cast<size_t>(C - i)), d);
    squares = hn::MulAdd(d, d, squares);
  });
  const float variance = hn::GetLane(hn::SumOfLanes(tag, squares)) / static_cast<float>(C);
  const float rstd = 1.0f / std::sqrt(variance + static_cast<float>(norm.eps));
  const Vec unit = hn::Set(tag, rstd);
  ForVectors(C, [&](int64_t, auto load, auto store) HWY_ATTR {
    const Vec n = hn::Mul(hn::Sub(load(s), centre), unit);
    if (normalised) store(n, normalised);
    store(hn::MulAdd(n, load(norm.weight), load(norm.bias)), y);
  });
  return rstd;
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace elliptical::kernels
HWY_AFTER_NAMESPACE();

#endif
