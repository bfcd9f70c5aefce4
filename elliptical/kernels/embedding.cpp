// SPDX-License-Identifier: MIT
//
// Tasks are blocks of rows (row_tasks-inl.h). Factors of dropout are drawn a row at a time into a
// buffer that stays in the first-level cache.
#include "elliptical/kernels/embedding.h"

#include "elliptical/kernels/simd_impl.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "elliptical/kernels/embedding.cpp"
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

void Embed(Rows size, const EmbedInputs<float>& in, float* y, const ParallelFor& parallel_for) {
  const RowTasks tasks(size);
  const int64_t C = size.C;
  parallel_for(tasks.count, [&](int64_t first, int64_t last) {
    const Tag tag;
    const Vec scale = hn::Set(tag, static_cast<float>(in.scale));
    float* buffer;
    const Arena arena({{&buffer, in.dropout.active() ? ElementFactorsRoom(C) : 0}});
    for (int64_t r = tasks.begin(first); r < tasks.end(last - 1); ++r) {
      const float* row = in.table + in.tokens[r] * C;
      const float* position = in.positions + r % in.N * C;
      const float* factor =
          in.dropout.active() ? ElementFactors(in.dropout, r * C, C, buffer) : nullptr;
      ForVectors(C, [&](int64_t, auto load, auto store) HWY_ATTR {
        const Vec value = hn::MulAdd(load(row), scale, load(position));
        store(factor ? hn::Mul(value, load(factor)) : value, y + r * C);
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

HWY_EXPORT(Embed);

void embed_forward(Rows size,
                   const EmbedInputs<float>& in,
                   float* y,
                   const ParallelFor& parallel_for) {
  HWY_DISPATCH_TABLE(Embed)[simd_chosen().GetIndex()](size, in, y, parallel_for);
}

}  // namespace elliptical::kernels
#endif  // HWY_ONCE
