// SPDX-License-Identifier: MIT
//
// For a = |z|, Phi(-a) = exp(-a^2 / 2) p(t) with t = 1 / (1 + 0.28 a) and a polynomial p of degree
// 6, fitted so that the absolute error of Phi is below 1.1e-8 before rounding.
#include "elliptical/kernels/gelu_mlp.h"

#include <algorithm>

#include "elliptical/kernels/simd_impl.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "elliptical/kernels/gelu_mlp.cpp"
#include "hwy/foreach_target.h"
// After foreach_target, which re-includes this file:
#include "elliptical/kernels/exp2-inl.h"
#include "elliptical/kernels/norm-inl.h"
#include "elliptical/kernels/product-inl.h"
#include "elliptical/kernels/vectors-inl.h"

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

HWY_INLINE Vec GeluSlope(Vec z, const Gaussian& gaussian) {
  const Vec inverse_root = hn::Set(Tag(), 0.39894228f);  // 1 / sqrt(2 pi)
  return hn::MulAdd(hn::Mul(z, inverse_root), gaussian.bell, gaussian.cumulative);
}

/// y = gelu(z) and, unless it is null, slope = gelu'(z). y may be z.
void Gelu(int64_t count, const float* z, float* y, float* slope) {
  ForVectors(count, [&](int64_t, auto load, auto store) HWY_ATTR {
    const Vec at = load(z);
    const Gaussian gaussian = GaussianAt(at);
    store(hn::Mul(at, gaussian.cumulative), y);
    if (slope) store(GeluSlope(at, gaussian), slope);
  });
}

/// dz = dy gelu'(z) and, unless it is null, y = gelu(z). dz may be dy.
void GeluGradient(int64_t count, const float* dy, const float* z, float* dz, float* y) {
  ForVectors(count, [&](int64_t, auto load, auto store) HWY_ATTR {
    const Vec at = load(z);
    const Gaussian gaussian = GaussianAt(at);
    store(hn::Mul(load(dy), GeluSlope(at, gaussian)), dz);
    if (y) store(hn::Mul(at, gaussian.cumulative), y);
  });
}

/// dz = dy slope. dz may be dy.
void TimesSlope(int64_t count, const float* dy, const float* slope, float* dz) {
  ForVectors(count, [&](int64_t, auto load, auto store)
                        HWY_ATTR { store(hn::Mul(load(dy), load(slope)), dz); });
}

/// to = a + b. `to` may be one of them.
void Add(int64_t count, const float* a, const float* b, float* to) {
  ForVectors(count, [&](int64_t, auto load, auto store)
                        HWY_ATTR { store(hn::Add(load(a), load(b)), to); });
}

void NormRows(
    int64_t rows, int64_t C, const float* s, const NormParameters<float>& norm, float* to) {
  for (int64_t r = 0; r < rows; ++r) NormRow(s + r * C, C, norm, to + r * C, nullptr);
}

void GeluMlpForward(const GeluMlp& p, const ParallelFor& parallel_for) {
  const int64_t width = p.norms ? p.F + 2 * p.C : p.F;
  ForRowBlocks(p.rows, width, parallel_for, [&](int64_t begin, int64_t rows, float* hidden) {
    const float* x = p.x + begin * p.C;
    float* y = p.y + begin * p.C;
    float *sum = hidden + rows * p.F, *normed = sum + rows * p.C;
    if (p.norms) {
      Add(rows * p.C, x, p.norms->residual + begin * p.C, sum);
      NormRows(rows, p.C, sum, p.norms->before, normed);
      x = normed;
    }
    float* z = p.z ? p.z + begin * p.F : hidden;
    MultiplyBlock(rows, p.C, p.F, x, p.up, p.up_bias, z);
    Gelu(rows * p.F, z, hidden, p.slope ? p.slope + begin * p.F : nullptr);
    MultiplyBlock(rows, p.F, p.C, hidden, p.down, p.down_bias, y);
    if (p.norms) {
      Add(rows * p.C, y, sum, y);
      NormRows(rows, p.C, y, p.norms->after, p.norms->normed + begin * p.C);
    }
  });
}

void GeluMlpBackward(const GeluMlpGradients& p, const ParallelFor& parallel_for) {
  ForRowBlocks(p.rows, p.F, parallel_for, [&](int64_t begin, int64_t rows, float* buffer) {
    float* dz = p.dz ? p.dz + begin * p.F : buffer;
    MultiplyBlock(rows, p.C, p.F, p.dy + begin * p.C, p.down, nullptr, dz);
    if (p.slope) {
      TimesSlope(rows * p.F, dz, p.slope + begin * p.F, dz);
    } else {
      GeluGradient(rows * p.F, dz, p.z + begin * p.F, dz,
                   p.hidden ? p.hidden + begin * p.F : nullptr);
    }
    MultiplyBlock(rows, p.F, p.C, dz, p.up, nullptr, p.dx + begin * p.C);
  });
}

}  // namespace
// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace elliptical::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace elliptical::kernels {

HWY_EXPORT(GeluMlpForward);
HWY_EXPORT(GeluMlpBackward);

void gelu_mlp_forward(const GeluMlp& layer, const ParallelFor& parallel_for) {
  HWY_DISPATCH_TABLE(GeluMlpForward)[simd_chosen().GetIndex()](layer, parallel_for);
}

void gelu_mlp_backward(const GeluMlpGradients& layer, const ParallelFor& parallel_for) {
  HWY_DISPATCH_TABLE(GeluMlpBackward)[simd_chosen().GetIndex()](layer, parallel_for);
}

}  // namespace elliptical::kernels
#endif  // HWY_ONCE
