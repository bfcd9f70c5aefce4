// SPDX-License-Identifier: MIT
//
// 2^x for x <= 0, the exponential of a softmax whose logits were multiplied by log2(e).
// Included once per SIMD target (Highway's -inl.h convention).

#if defined(ELLIPTICAL_KERNELS_EXP2_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ELLIPTICAL_KERNELS_EXP2_INL_H_
#undef ELLIPTICAL_KERNELS_EXP2_INL_H_
#else
#define ELLIPTICAL_KERNELS_EXP2_INL_H_
#endif

#include "elliptical/kernels/tile-inl.h"

HWY_BEFORE_NAMESPACE();
namespace elliptical::kernels {
namespace HWY_NAMESPACE {

/// max(x, floor), and NaN for NaN.
HWY_INLINE Vec ClampBelow(Vec x, Vec floor) {
#if HWY_ARCH_X86 && HWY_TARGET != HWY_SCALAR
  return hn::Max(floor, x);  // the instruction returns its second operand when one is NaN
#else
  return hn::IfThenElse(hn::Lt(x, floor), floor, x);
#endif
}

/// 2^x for x <= 0 with relative error below 2.4e-7; 2^0 = 1; exactly 0 below -127, so for -inf; NaN
/// for NaN. A minimax polynomial of degree 5 on the fraction, divided by its constant term: that
/// constant factor cancels in a softmax, and the largest probability before normalisation is
/// exactly 1.
HWY_INLINE Vec Exp2(Vec x) {
  const Tag tag;
#if HWY_TARGET <= HWY_AVX3
  // The fraction x - floor(x) in [0, 1) and the multiplication by 2^floor(x) are one instruction
  // each.
  const Vec fraction{_mm512_reduce_ps(x.raw, 0x01)};
  Vec p = hn::MulAdd(hn::Set(tag, 0.0018775768f), fraction, hn::Set(tag, 0.0089893406f));
  p = hn::MulAdd(p, fraction, hn::Set(tag, 0.055826321f));
  p = hn::MulAdd(p, fraction, hn::Set(tag, 0.24015364f));
  p = hn::MulAdd(p, fraction, hn::Set(tag, 0.69315314f));
  p = hn::MulAdd(p, fraction, hn::Set(tag, 1.0f));
  const __mmask16 normal = _mm512_cmp_ps_mask(x.raw, _mm512_set1_ps(-126.0f), _CMP_NLT_UQ);
  return Vec{_mm512_maskz_scalef_ps(normal, p.raw, x.raw)};
#else
  // Adding 1.5 * 2^23 + 127 rounds x to an integer and leaves it, with the exponent bias, in the
  // low bits. At -127 that exponent field is 0, and with it the result.
  const hn::RebindToSigned<Tag> int_tag;
  const Vec magic = hn::Set(tag, 12582912.0f + 127.0f);
  x = ClampBelow(x, hn::Set(tag, -127.0f));
  const Vec shifted = hn::Add(x, magic);
  const Vec fraction = hn::Sub(x, hn::Sub(shifted, magic));  // in [-1/2, 1/2]
  Vec p = hn::MulAdd(hn::Set(tag, 0.0013276471f), fraction, hn::Set(tag, 0.009675541f));
  p = hn::MulAdd(p, fraction, hn::Set(tag, 0.055507127f));
  p = hn::MulAdd(p, fraction, hn::Set(tag, 0.24022119f));
  p = hn::MulAdd(p, fraction, hn::Set(tag, 0.69314694f));
  p = hn::MulAdd(p, fraction, hn::Set(tag, 1.0f));
  const Vec power = hn::BitCast(tag, hn::ShiftLeft<23>(hn::BitCast(int_tag, shifted)));
  return hn::Mul(p, power);
#endif
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace elliptical::kernels
HWY_AFTER_NAMESPACE();

#endif
