// SPDX-License-Identifier: MIT
#include "elliptical/kernels/dropout.h"

#include <algorithm>

#include "elliptical/kernels/simd_impl.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "elliptical/kernels/dropout.cpp"
#include "hwy/foreach_target.h"
// After foreach_target, which re-includes this file:
#include "elliptical/kernels/arena.h"
#include "elliptical/kernels/philox-inl.h"
#include "elliptical/kernels/vectors-inl.h"

HWY_BEFORE_NAMESPACE();
namespace elliptical::kernels {
namespace HWY_NAMESPACE {
namespace {

void ScaledDropout(int64_t count,
                   const float* x,
                   double factor,
                   const ElementDropout& dropout,
                   float* y,
                   const ParallelFor& parallel_for) {
  constexpr int64_t kPiece = 4096;  // elements whose factors are drawn at once
  const int64_t pieces = (count + kPiece - 1) / kPiece;
  parallel_for(pieces, [&](int64_t first, int64_t last) {
    const Tag tag;
    const Vec scale = hn::Set(tag, static_cast<float>(factor));
    float* buffer;
    const Arena arena({{&buffer, dropout.active() ? ElementFactorsRoom(kPiece) : 0}});
    for (int64_t piece = first; piece < last; ++piece) {
      const int64_t begin = piece * kPiece, size = std::min(kPiece, count - begin);
      const float* keep = dropout.active() ? ElementFactors(dropout, begin, size, buffer) : nullptr;
      ForVectors(size, [&](int64_t, auto load, auto store) HWY_ATTR {
        const Vec value = hn::Mul(load(x + begin), scale);
        store(keep ? hn::Mul(value, load(keep)) : value, y + begin);
      });
    }
  });
}

}  // namespace
// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace elliptical::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace elliptical::kernels {

HWY_EXPORT(ScaledDropout);

void scaled_dropout(int64_t count,
                    const float* x,
                    double factor,
                    const ElementDropout& dropout,
                    float* y,
                    const ParallelFor& parallel_for) {
  HWY_DISPATCH_TABLE(ScaledDropout)
  [simd_chosen().GetIndex()](count, x, factor, dropout, y, parallel_for);
}

}  // namespace elliptical::kernels
#endif  // HWY_ONCE
