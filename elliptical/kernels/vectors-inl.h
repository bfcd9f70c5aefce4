// SPDX-License-Identifier: MIT
//
// A loop over the vectors of an array, the incomplete last one included.
// Included once per SIMD target (Highway's -inl.h convention).

#if defined(ELLIPTICAL_KERNELS_VECTORS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ELLIPTICAL_KERNELS_VECTORS_INL_H_
#undef ELLIPTICAL_KERNELS_VECTORS_INL_H_
#else
#define ELLIPTICAL_KERNELS_VECTORS_INL_H_
#endif

#include <cstdint>

#include "elliptical/kernels/tile-inl.h"

HWY_BEFORE_NAMESPACE();
namespace elliptical::kernels {
namespace HWY_NAMESPACE {

/// Calls body(i, load, store) for i = 0, kLanes, ... below count: `load(array)` gives the vector at
/// array + i, with zeros in lanes at and behind `count`; `store(vector, array)` leaves memory there
/// untouched.
template <class Body>
HWY_INLINE void ForVectors(int64_t count, const Body& body) {
  const Tag tag;
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    body(
        i, [&](const float* from) HWY_ATTR { return hn::LoadU(tag, from + i); },
        [&](Vec value, float* to) HWY_ATTR { hn::StoreU(value, tag, to + i); });
  }
  if (i < count) {
    const int64_t rest = count - i;
    body(
        i, [&](const float* from) HWY_ATTR { return LoadFirst(from + i, rest); },
        [&](Vec value, float* to) HWY_ATTR { StoreFirst(value, to + i, rest); });
  }
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace elliptical::kernels
HWY_AFTER_NAMESPACE();

#endif
