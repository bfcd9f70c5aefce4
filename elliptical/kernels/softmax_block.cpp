// SPDX-License-Identifier: MIT
//
// The exponential pass has rows as tasks, the gradient pass stripes of columns, so that each owns
// the sums it makes.
#include "elliptical/kernels/softmax_block.h"

#include <algorithm>

#include "elliptical/kernels/simd_impl.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "elliptical/kernels/softmax_block.cpp"
#include "hwy/foreach_target.h"
// After foreach_target, which re-includes this file:
#include "elliptical/kernels/exp2-inl.h"
#include "elliptical/kernels/vectors-inl.h"

HWY_BEFORE_NAMESPACE();
namespace elliptical::kernels {
namespace HWY_NAMESPACE {
namespace {

constexpr float kLog2e = 1.44269504f;

void ExpRow(
    float* HWY_RESTRICT z, const float* HWY_RESTRICT bias, int64_t words, float& max, float& sum) {
  const Tag tag;
  constexpr float kLowest = -3.4e38f;
  Vec largest = hn::Set(tag, kLowest);
  ForVectors(words, [&](int64_t i, auto load, auto store) HWY_ATTR {
    const Vec value = hn::Add(load(z), load(bias));
    store(value, z);
    const bool whole = i + kLanes <= words;
    largest = hn::Max(
        whole ? value
              : hn::IfThenElse(hn::FirstN(tag, static_cast<size_t>(words - i)), value, largest),
        largest);
  });
  max = hn::GetLane(hn::MaxOfLanes(tag, largest));
  // The exponent is (z - max) log2(e): the difference is small where it matters, so exact there.
  const Vec shift = hn::Set(tag, max), unit = hn::Set(tag, kLog2e);
  Vec total0 = hn::Zero(tag), total1 = hn::Zero(tag);
  const auto exponential = [&](Vec value)
                               HWY_ATTR { return Exp2(hn::Mul(hn::Sub(value, shift), unit)); };
  int64_t i = 0;
  for (; i + 2 * kLanes <= words; i += 2 * kLanes) {
    const Vec e0 = exponential(hn::LoadU(tag, z + i));
    const Vec e1 = exponential(hn::LoadU(tag, z + i + kLanes));
    hn::StoreU(e0, tag, z + i);
    hn::StoreU(e1, tag, z + i + kLanes);
    total0 = hn::Add(total0, e0);
    total1 = hn::Add(total1, e1);
  }
  for (; i < words; i += kLanes) {
    const int64_t rest = std::min(kLanes, words - i);
    Vec e = exponential(LoadFirst(z + i, rest));
    e = hn::IfThenElseZero(hn::FirstN(tag, static_cast<size_t>(rest)), e);
    StoreFirst(e, z + i, rest);
    total0 = hn::Add(total0, e);
  }
  sum = hn::GetLane(hn::SumOfLanes(tag, hn::Add(total0, total1)));
}

void BlockExp(const SoftmaxBlock& block,
              const float* bias,
              float* max,
              float* sum,
              float* target_logit,
              const ParallelFor& parallel_for) {
  const int64_t words = block.words;
  const int64_t rows_per_task = std::max<int64_t>(1, 32768 / std::max<int64_t>(1, words));
  const int64_t tasks = (block.rows + rows_per_task - 1) / rows_per_task;
  parallel_for(tasks, [&](int64_t first, int64_t last) {
    const int64_t end = std::min(block.rows, last * rows_per_task);
    for (int64_t r = first * rows_per_task; r < end; ++r) {
      float* z = block.values + r * words;
      const int64_t target = block.targets[r] - block.first_word;
      if (0 <= target && target < words) target_logit[r] = z[target] + bias[target];
      ExpRow(z, bias, words, max[r], sum[r]);
    }
  });
}

void BlockGradient(const SoftmaxBlock& block,
                   const float* factor,
                   const float* step,
                   float* d_bias,
                   bool accumulate,
                   const ParallelFor& parallel_for) {
  constexpr int64_t kStripe = 512;
  const int64_t words = block.words;
  parallel_for((words + kStripe - 1) / kStripe, [&](int64_t first, int64_t last) {
    const Tag tag;
    HWY_ALIGN float sums[kStripe];
    for (int64_t stripe = first; stripe < last; ++stripe) {
      const int64_t begin = stripe * kStripe, width = std::min(kStripe, words - begin);
      std::fill_n(sums, kStripe, 0.0f);
      for (int64_t r = 0; r < block.rows; ++r) {
        float* e = block.values + r * words + begin;
        const Vec scale = hn::Set(tag, factor[r]);
        ForVectors(width, [&](int64_t i, auto load, auto store) HWY_ATTR {
          const Vec p = hn::Mul(load(e), scale);
          store(p, e);
          hn::Store(hn::Add(hn::Load(tag, sums + i), p), tag, sums + i);
        });
        const int64_t target = block.targets[r] - block.first_word - begin;
        if (0 <= target && target < width) {
          e[target] -= step[r];
          sums[target] -= step[r];
        }
      }
      for (int64_t c = 0; c < width; ++c) {
        d_bias[begin + c] = accumulate ? d_bias[begin + c] + sums[c] : sums[c];
      }
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

HWY_EXPORT(BlockExp);
HWY_EXPORT(BlockGradient);

void softmax_block_exp(const SoftmaxBlock& block,
                       const float* bias,
                       float* max,
                       float* sum,
                       float* target_logit,
                       const ParallelFor& parallel_for) {
  HWY_DISPATCH_TABLE(BlockExp)
  [simd_chosen().GetIndex()](block, bias, max, sum, target_logit, parallel_for);
}

void softmax_block_gradient(const SoftmaxBlock& block,
                            const float* factor,
                            const float* step,
                            float* d_bias,
                            bool accumulate,
                            const ParallelFor& parallel_for) {
  HWY_DISPATCH_TABLE(BlockGradient)
  [simd_chosen().GetIndex()](block, factor, step, d_bias, accumulate, parallel_for);
}

}  // namespace elliptical::kernels
#endif  // HWY_ONCE
