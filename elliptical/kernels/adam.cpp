// SPDX-License-Identifier: MIT
//
// All arrays are cut into pieces of one size, and pieces are the tasks: many small parameters and
// one huge table take the same care.
#include "elliptical/kernels/adam.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "elliptical/kernels/simd_impl.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "elliptical/kernels/adam.cpp"
#include "hwy/foreach_target.h"
// After foreach_target, which re-includes this file:
#include "elliptical/kernels/vectors-inl.h"

namespace elliptical::kernels {

/// Elements [begin, begin + size) of array number `array`. Defined once for all targets.
#ifndef ELLIPTICAL_KERNELS_ADAM_PIECES_
#define ELLIPTICAL_KERNELS_ADAM_PIECES_
namespace {
struct Piece {
  size_t array;
  int64_t begin, size;
};

template <class Array>
std::vector<Piece> cut(const std::vector<Array>& arrays) {
  constexpr int64_t kPiece = 1 << 16;
  std::vector<Piece> pieces;
  for (size_t i = 0; i < arrays.size(); ++i) {
    for (int64_t begin = 0; begin < arrays[i].size; begin += kPiece) {
      pieces.push_back({i, begin, std::min(kPiece, arrays[i].size - begin)});
    }
  }
  return pieces;
}
}  // namespace
#endif

}  // namespace elliptical::kernels

HWY_BEFORE_NAMESPACE();
namespace elliptical::kernels {
namespace HWY_NAMESPACE {
namespace {

void Update(const AdamArrays& array, const Piece& piece, const AdamFactors& f) {
  const Tag tag;
  const auto set = [&](float value) HWY_ATTR { return hn::Set(tag, value); };
  const Vec beta1 = set(f.beta1), rest1 = set(1 - f.beta1), beta2 = set(f.beta2),
            rest2 = set(1 - f.beta2), eps = set(f.eps), scale = set(f.gradient_scale),
            keep = set(f.keep), step = set(f.step_size), second_factor = set(f.second_factor);
  float* p = array.parameter + piece.begin;
  const float* gradient = array.gradient + piece.begin;
  float* first = array.first + piece.begin;
  float* second = array.second + piece.begin;
  ForVectors(piece.size, [&](int64_t, auto load, auto store) HWY_ATTR {
    const Vec g = hn::Mul(load(gradient), scale);
    const Vec m = hn::MulAdd(beta1, load(first), hn::Mul(rest1, g));
    const Vec v = hn::MulAdd(beta2, load(second), hn::Mul(rest2, hn::Mul(g, g)));
    const Vec divisor = hn::MulAdd(hn::Sqrt(v), second_factor, eps);
    store(m, first);
    store(v, second);
    store(hn::NegMulAdd(step, hn::Div(m, divisor), hn::Mul(load(p), keep)), p);
  });
}

void Adam(const std::vector<AdamArrays>& arrays,
          const AdamFactors& factors,
          const ParallelFor& parallel_for) {
  const std::vector<Piece> pieces = cut(arrays);
  parallel_for(static_cast<int64_t>(pieces.size()), [&](int64_t first, int64_t last) {
    for (int64_t i = first; i < last; ++i) {
      const Piece& piece = pieces[static_cast<size_t>(i)];
      Update(arrays[piece.array], piece, factors);
    }
  });
}

#if HWY_HAVE_FLOAT64
double PieceSquares(const float* data, int64_t size) {
  const hn::ScalableTag<double> wide;
  const hn::Rebind<float, decltype(wide)> narrow;
  const auto lanes = static_cast<int64_t>(hn::Lanes(wide));
  auto sum0 = hn::Zero(wide), sum1 = hn::Zero(wide);
  int64_t i = 0;
  for (; i + 2 * lanes <= size; i += 2 * lanes) {
    const auto a = hn::PromoteTo(wide, hn::LoadU(narrow, data + i));
    const auto b = hn::PromoteTo(wide, hn::LoadU(narrow, data + i + lanes));
    sum0 = hn::MulAdd(a, a, sum0);
    sum1 = hn::MulAdd(b, b, sum1);
  }
  double sum = hn::GetLane(hn::SumOfLanes(wide, hn::Add(sum0, sum1)));
  for (; i < size; ++i) sum += double{data[i]} * double{data[i]};
  return sum;
}
#else
double PieceSquares(const float* data, int64_t size) {
  double sum = 0;
  for (int64_t i = 0; i < size; ++i) sum += double{data[i]} * double{data[i]};
  return sum;
}
#endif

double SumOfSquares(const std::vector<FloatArray>& arrays, const ParallelFor& parallel_for) {
  const std::vector<Piece> pieces = cut(arrays);
  std::vector<double> sums(pieces.size());
  parallel_for(static_cast<int64_t>(pieces.size()), [&](int64_t first, int64_t last) {
    for (int64_t i = first; i < last; ++i) {
      const Piece& piece = pieces[static_cast<size_t>(i)];
      sums[static_cast<size_t>(i)] =
          PieceSquares(arrays[piece.array].data + piece.begin, piece.size);
    }
  });
  return std::accumulate(sums.begin(), sums.end(), 0.0);
}

}  // namespace
// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace elliptical::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace elliptical::kernels {

HWY_EXPORT(Adam);
HWY_EXPORT(SumOfSquares);

void adam(const std::vector<AdamArrays>& arrays,
          const AdamFactors& factors,
          const ParallelFor& parallel_for) {
  HWY_DISPATCH_TABLE(Adam)[simd_chosen().GetIndex()](arrays, factors, parallel_for);
}

double sum_of_squares(const std::vector<FloatArray>& arrays, const ParallelFor& parallel_for) {
  return HWY_DISPATCH_TABLE(SumOfSquares)[simd_chosen().GetIndex()](arrays, parallel_for);
}

}  // namespace elliptical::kernels
#endif  // HWY_ONCE
