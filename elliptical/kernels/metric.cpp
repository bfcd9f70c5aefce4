// SPDX-License-Identifier: MIT
//
// One pass over v and v_prev, coordinates in the vector lanes. One task is one head: it keeps a
// running sum per coordinate and, for the prefix form, writes a scaled row after every token. Sums
// are compensated (Kahan): a plain running sum would lose digits that a mean over long sequences
// has.
#include "elliptical/kernels/metric.h"

#include <algorithm>
#include <cmath>

#include "elliptical/kernels/simd_impl.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "elliptical/kernels/metric.cpp"
#include "hwy/foreach_target.h"
// After foreach_target, which re-includes this file:
#include "hwy/aligned_allocator.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace elliptical::kernels {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

const hn::ScalableTag<float> kTag;
using Vec = hn::Vec<decltype(kTag)>;

/// Running sums of one head, with room for a whole last vector: lanes beyond D stay 0.
struct Sums {
  int64_t D, padded;
  hwy::AlignedFreeUniquePtr<float[]> memory;
  float* sum;
  float* lost;  ///< what rounding took from `sum`
  float* now;   ///< copy of a row of v, where it can not be read in place
  float* before;

  explicit Sums(int64_t width) : D(width) {
    const auto lanes = static_cast<int64_t>(hn::Lanes(kTag));
    padded = (D + lanes - 1) / lanes * lanes;
    memory = hwy::AllocateAligned<float>(static_cast<size_t>(std::max<int64_t>(1, 4 * padded)));
    sum = memory.get();
    lost = sum + padded;
    now = lost + padded;
    before = now + padded;
    std::fill_n(sum, 4 * padded, 0.0f);
  }

  void clear() { std::fill_n(sum, 2 * padded, 0.0f); }
};

/// A row that whole vectors may be read from: in place, or copied beside zeros.
const float* ReadableRow(const float* row, int64_t stride, const Sums& sums, float* copy) {
  if (stride == 1 && sums.D == sums.padded) return row;
  for (int64_t i = 0; i < sums.D; ++i) copy[i] = row[i * stride];
  return copy;
}

/// sum += |v - v_prev|, compensated.
void AddToken(const MetricInputs<float>& in, int64_t b, int64_t h, int64_t n, Sums& sums) {
  const float* v = ReadableRow(in.v.row(b, h, n), in.v.stride_d, sums, sums.now);
  const float* v_prev = ReadableRow(in.v_prev.row(b, h, n), in.v_prev.stride_d, sums, sums.before);
  const auto lanes = static_cast<int64_t>(hn::Lanes(kTag));
  for (int64_t i = 0; i < sums.padded; i += lanes) {
    const Vec change = hn::Abs(hn::Sub(hn::LoadU(kTag, v + i), hn::LoadU(kTag, v_prev + i)));
    const Vec sum = hn::Load(kTag, sums.sum + i);
    const Vec term = hn::Sub(change, hn::Load(kTag, sums.lost + i));
    const Vec next = hn::Add(sum, term);
    hn::Store(hn::Sub(hn::Sub(next, sum), term), kTag, sums.lost + i);
    hn::Store(next, kTag, sums.sum + i);
  }
}

/// Largest and total sum over the coordinates.
struct Extent {
  float max, total;
};

Extent Measure(const Sums& sums) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(kTag));
  Vec max = hn::Zero(kTag), total = hn::Zero(kTag);
  for (int64_t i = 0; i < sums.padded; i += lanes) {
    const Vec sum = hn::Load(kTag, sums.sum + i);
    max = hn::Max(max, sum);
    total = hn::Add(total, sum);
  }
  return {hn::GetLane(hn::MaxOfLanes(kTag, max)), hn::GetLane(hn::SumOfLanes(kTag, total))};
}

/// m = sum / divisor; count and delta cancel unless the metric is not scaled.
void WriteRow(const MetricInputs<float>& in, const Sums& sums, int64_t count, float* row) {
  const Extent extent = Measure(sums);
  if (extent.max == 0.0f) {
    std::fill_n(row, sums.D, 1.0f);
    return;
  }
  float divisor = extent.max;
  if (in.scaling == MetricScaling::kMean) divisor = extent.total / static_cast<float>(sums.D);
  if (in.scaling == MetricScaling::kNone)
    divisor = static_cast<float>(static_cast<double>(count) * in.delta);
  const auto lanes = static_cast<int64_t>(hn::Lanes(kTag));
  const Vec divisors = hn::Set(kTag, divisor);
  int64_t i = 0;
  for (; i + lanes <= sums.D; i += lanes) {
    hn::StoreU(hn::Div(hn::Load(kTag, sums.sum + i), divisors), kTag, row + i);
  }
  for (; i < sums.D; ++i) row[i] = sums.sum[i] / divisor;
}

void Difference(const MetricInputs<float>& in, float* metric, const ParallelFor& parallel_for) {
  const int64_t rows = in.prefix ? in.N : 1;
  parallel_for(in.B * in.H, [&](int64_t begin, int64_t end) {
    Sums sums(in.D);
    for (int64_t head = begin; head < end; ++head) {
      const int64_t b = head / in.H, h = head % in.H;
      const int64_t real = in.lengths ? std::clamp<int64_t>(in.lengths[b], 0, in.N) : in.N;
      float* row = metric + head * rows * in.D;
      sums.clear();
      for (int64_t n = 0; n < real; ++n) {
        AddToken(in, b, h, n, sums);
        if (in.prefix) WriteRow(in, sums, n + 1, row + n * in.D);
      }
      if (!in.prefix) WriteRow(in, sums, real, row);
      // Padding adds nothing: its rows are those of the last real token.
      for (int64_t n = real; in.prefix && n < in.N; ++n) WriteRow(in, sums, real, row + n * in.D);
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

HWY_EXPORT(Difference);

void metric_difference(const MetricInputs<float>& in,
                       float* metric,
                       const ParallelFor& parallel_for) {
  HWY_DISPATCH_TABLE(Difference)[simd_chosen().GetIndex()](in, metric, parallel_for);
}

}  // namespace elliptical::kernels
#endif  // HWY_ONCE
