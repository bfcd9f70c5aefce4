// SPDX-License-Identifier: MIT
//
// Keys lie in the vector lanes: a head's keys, their sines and cosines are transposed to (D, M)
// once, then each query runs over vectors of keys and, for each, over coordinates. Products of
// sincs are kept as a mantissa and an exponent of their own, since a product over many coordinates
// leaves the range of a float; there is one logarithm per pair, not one per coordinate.
#include "elliptical/kernels/fourier.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "elliptical/kernels/simd_impl.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "elliptical/kernels/fourier.cpp"
#include "hwy/foreach_target.h"
// After foreach_target, which re-includes this file:
#include "elliptical/kernels/arena.h"
#include "elliptical/kernels/exp2-inl.h"
#include "elliptical/kernels/vectors-inl.h"
#include "hwy/contrib/math/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace elliptical::kernels {
namespace HWY_NAMESPACE {
namespace {

constexpr float kFloor = 1e-20f;  // of |sinc|
constexpr float kPower = 4.0f;
constexpr float kMinusInfinity = -std::numeric_limits<float>::infinity();

int64_t RoundUp(int64_t count) { return (count + kLanes - 1) / kLanes * kLanes; }

/// Coordinates of one query: value, sine, cosine, (3, D).
struct Query {
  const float *x, *sin, *cos;
};

/// A head's keys in the lanes: each (D, stride), zeros behind the last key.
struct Keys {
  float *x, *sin, *cos;
  int64_t stride;
};

/// Visible keys of query n: [0, end).
int64_t VisibleEnd(const FourierInputs<float>& in, int64_t b, int64_t n) {
  int64_t end = in.is_causal ? std::clamp<int64_t>(n + 1 + in.M - in.N, 0, in.M) : in.M;
  if (in.key_lengths) {
    const int64_t length = in.key_lengths[b];
    if (in.N == in.M && n >= length) return 0;
    end = std::min(end, length);
  }
  return end;
}

/// to (columns, stride) = from (rows, columns) transposed, zeros behind.
void Transpose(const float* from, int64_t rows, int64_t columns, int64_t stride, float* to) {
  for (int64_t c = 0; c < columns; ++c) {
    for (int64_t r = 0; r < rows; ++r) to[c * stride + r] = from[r * columns + c];
    std::fill(to + c * stride + rows, to + (c + 1) * stride, 0.0f);
  }
}

void SinesAndCosines(const float* x, int64_t count, float* sin, float* cos) {
  const Tag tag;
  ForVectors(count, [&](int64_t, auto load, auto store) HWY_ATTR {
    const Vec value = load(x);
    store(hn::Sin(tag, value), sin);
    store(hn::Cos(tag, value), cos);
  });
}

/// sinc(x) for |x| < 1, by its series: the first term left out is below 3e-8.
HWY_INLINE Vec SincNearZero(Vec x2) {
  const Tag tag;
  Vec p = hn::MulAdd(x2, hn::Set(tag, 1.0f / 362880), hn::Set(tag, -1.0f / 5040));
  p = hn::MulAdd(p, x2, hn::Set(tag, 1.0f / 120));
  p = hn::MulAdd(p, x2, hn::Set(tag, -1.0f / 6));
  return hn::MulAdd(p, x2, hn::Set(tag, 1.0f));
}

/// The first `rest` lanes at `from`, the others 0.
template <bool kFull>
HWY_INLINE Vec LoadKeys(const float* from, int64_t rest) {
  const Tag tag;
  if constexpr (kFull) return hn::LoadU(tag, from);
  return LoadFirst(from, rest);
}

/// s log2(e) of a query and the keys from j on; -inf in lanes at and behind `rest`.
template <bool kFull>
HWY_INLINE Vec Logits(const Query& q, const Keys& keys, int64_t D, int64_t j, int64_t rest) {
  const Tag tag;
  const hn::RebindToSigned<Tag> int_tag;
  const Vec one = hn::Set(tag, 1.0f), floor = hn::Set(tag, kFloor);
  Vec product = one, poison = hn::Zero(tag);
  auto exponent = hn::Zero(int_tag);
  for (int64_t d = 0; d < D; ++d) {
    const float* at = keys.x + d * keys.stride + j;
    const int64_t to_sin = keys.sin - keys.x, to_cos = keys.cos - keys.x;
    const Vec x = hn::Sub(hn::Set(tag, q.x[d]), LoadKeys<kFull>(at, rest));
    const Vec sin = hn::MulSub(hn::Set(tag, q.sin[d]), LoadKeys<kFull>(at + to_cos, rest),
                               hn::Mul(hn::Set(tag, q.cos[d]), LoadKeys<kFull>(at + to_sin, rest)));
    const auto near = hn::Lt(hn::Abs(x), one);
    const Vec sinc = hn::IfThenElse(near, SincNearZero(hn::Mul(x, x)), hn::Div(sin, x));
    product = hn::Mul(product, hn::Max(hn::Abs(sinc), floor));
    poison = hn::Add(poison, sin);  // Inf and NaN do not survive the next line
    const auto bits = hn::BitCast(int_tag, product);
    exponent = hn::Add(exponent, hn::ShiftRight<23>(bits));
    product = hn::BitCast(tag, hn::Or(hn::And(bits, hn::Set(int_tag, 0x007FFFFF)),
                                      hn::Set(int_tag, 0x3F800000)));  // in [1, 2)
  }
  const auto bias = hn::Set(int_tag, static_cast<int32_t>(127 * D));
  const Vec log2 = hn::Add(hn::ConvertTo(tag, hn::Sub(exponent, bias)), hn::Log2(tag, product));
  const Vec result = hn::MulAdd(poison, hn::Zero(tag), hn::Mul(log2, hn::Set(tag, kPower)));
  if constexpr (kFull) return result;
  return hn::IfThenElse(hn::FirstN(tag, static_cast<size_t>(rest)), result,
                        hn::Set(tag, kMinusInfinity));
}

/// A row of logits; -inf from `end` to the end of its last vector.
void LogitRow(const Query& q, const Keys& keys, int64_t D, int64_t end, float* row) {
  const Tag tag;
  int64_t j = 0;
  for (; j + kLanes <= end; j += kLanes) {
    hn::Store(Logits<true>(q, keys, D, j, kLanes), tag, row + j);
  }
  if (j < end) hn::Store(Logits<false>(q, keys, D, j, end - j), tag, row + j);
}

/// row = 2^(row - max) over `end` keys, zeros behind; returns their sum.
float Exponentials(int64_t end, float max, float* row) {
  const Tag tag;
  Vec sum = hn::Zero(tag);
  for (int64_t j = 0; j < end; j += kLanes) {
    const Vec p = Exp2(hn::Sub(hn::Load(tag, row + j), hn::Set(tag, max)));
    hn::Store(p, tag, row + j);
    sum = hn::Add(sum, p);
  }
  return hn::GetLane(hn::SumOfLanes(tag, sum));
}

/// row[j] *= 0 or 1 / (1 - p).
void DropRow(const Dropout& dropout, int64_t head, int64_t n, int64_t end, float* row) {
  const auto keep_scale = static_cast<float>(dropout.keep_scale);
  for (int64_t j = 0; j < end; j += 4) {
    const PhiloxCounter words = dropout.words(head, n, j);
    for (int64_t i = j; i < std::min(end, j + 4); ++i) {
      row[i] *= words[static_cast<size_t>(i - j)] >= dropout.threshold ? keep_scale : 0.0f;
    }
  }
}

/// Arrays of one thread for one head.
struct Head {
  Keys keys;
  float *query_sin, *query_cos, *row;
  Query query(const FourierInputs<float>& in, int64_t head, int64_t n) const {
    const int64_t D = in.D;
    return {in.a + (head * in.N + n) * D, query_sin + n * D, query_cos + n * D};
  }
};

void PrepareHead(const FourierInputs<float>& in, int64_t t, const Head& head) {
  const int64_t padded = head.keys.stride * in.D;
  Transpose(in.b + t * in.M * in.D, in.M, in.D, head.keys.stride, head.keys.x);
  SinesAndCosines(head.keys.x, padded, head.keys.sin, head.keys.cos);
  SinesAndCosines(in.a + t * in.N * in.D, in.N * in.D, head.query_sin, head.query_cos);
}

void FourierForward(const FourierInputs<float>& in,
                    const FourierOutputs<float>& out,
                    const ParallelFor& parallel_for) {
  const int64_t N = in.N, M = in.M, D = in.D, Dv = in.Dv, stride = RoundUp(M);
  const float log2_epsilon =
      in.epsilon > 0 ? static_cast<float>(std::log2(in.epsilon)) : kMinusInfinity;
  share_tasks(in.B * in.H, parallel_for, [&](TaskQueue& queue) {
    Head head{};
    head.keys.stride = stride;
    const Arena arena({{&head.keys.x, D * stride},
                       {&head.keys.sin, D * stride},
                       {&head.keys.cos, D * stride},
                       {&head.query_sin, N * D},
                       {&head.query_cos, N * D},
                       {&head.row, stride}});
    for (int64_t t = queue.take(); t >= 0; t = queue.take()) {
      PrepareHead(in, t, head);
      const float* v = in.v + t * M * Dv;
      for (int64_t n = 0; n < N; ++n) {
        const int64_t end = VisibleEnd(in, t / in.H, n);
        float* o = out.o + (t * N + n) * Dv;
        std::fill_n(o, Dv, 0.0f);
        LogitRow(head.query(in, t, n), head.keys, D, end, head.row);
        float max = log2_epsilon;
        for (int64_t j = 0; j < end; ++j) max = head.row[j] <= max ? max : head.row[j];
        float sum = 0;
        if (end > 0) {
          sum = Exponentials(end, max, head.row) + std::exp2(log2_epsilon - max);
          if (in.dropout.active()) DropRow(in.dropout, t, n, end, head.row);
          for (int64_t j = 0; j < end; ++j) {
            const Vec p = hn::Set(Tag(), head.row[j] / sum);
            const float* from = v + j * Dv;
            ForVectors(Dv, [&](int64_t, auto load, auto store)
                               HWY_ATTR { store(hn::MulAdd(p, load(from), load(o)), o); });
          }
        }
        if (out.row_max) out.row_max[t * N + n] = max;
        if (out.row_sum) out.row_sum[t * N + n] = sum;
      }
    }
  });
}

/// Gradients of one query: d_q (D, lanes) and d_k (D, stride) are added to, g[j] is the gradient of
/// s[n,j].
template <bool kFull>
HWY_INLINE void DistanceGradients(const Query& q,
                                  const Keys& keys,
                                  int64_t D,
                                  int64_t j,
                                  int64_t rest,
                                  Vec g,
                                  float* d_q,
                                  float* d_k) {
  const Tag tag;
  const Vec one = hn::Set(tag, 1.0f), floor = hn::Set(tag, kFloor);
  for (int64_t d = 0; d < D; ++d) {
    const float* at = keys.x + d * keys.stride + j;
    const int64_t to_sin = keys.sin - keys.x, to_cos = keys.cos - keys.x;
    const Vec key_sin = LoadKeys<kFull>(at + to_sin, rest);
    const Vec key_cos = LoadKeys<kFull>(at + to_cos, rest);
    const Vec q_sin = hn::Set(tag, q.sin[d]), q_cos = hn::Set(tag, q.cos[d]);
    const Vec x = hn::Sub(hn::Set(tag, q.x[d]), LoadKeys<kFull>(at, rest));
    const Vec sin = hn::MulSub(q_sin, key_cos, hn::Mul(q_cos, key_sin));
    const Vec cos = hn::MulAdd(q_cos, key_cos, hn::Mul(q_sin, key_sin));
    // d log|sinc| / dx = cot x - 1 / x = (x cos x - sin x) / (x sin x); near 0 both by series.
    const Vec x2 = hn::Mul(x, x);
    Vec series = hn::MulAdd(x2, hn::Set(tag, -1.0f / 3991680), hn::Set(tag, 1.0f / 45360));
    series = hn::MulAdd(series, x2, hn::Set(tag, -1.0f / 840));
    series = hn::MulAdd(series, x2, hn::Set(tag, 1.0f / 30));
    series = hn::MulAdd(series, x2, hn::Set(tag, -1.0f / 3));
    const auto near = hn::Lt(hn::Abs(x), one);
    const Vec above = hn::IfThenElse(near, hn::Mul(series, x), hn::MulSub(cos, x, sin));
    const Vec below = hn::IfThenElse(near, SincNearZero(x2), hn::Mul(x, sin));
    // At the floor the logarithm is constant.
    const auto flat = hn::AndNot(near, hn::Lt(hn::Abs(sin), hn::Mul(hn::Abs(x), floor)));
    const Vec t = hn::IfThenZeroElse(flat, hn::Mul(g, hn::Div(above, below)));
    hn::Store(hn::Add(hn::Load(tag, d_q + d * kLanes), t), tag, d_q + d * kLanes);
    float* to = d_k + d * keys.stride + j;
    hn::Store(hn::Sub(hn::Load(tag, to), t), tag, to);
  }
}

void FourierBackward(const FourierInputs<float>& in,
                     const FourierGradients<float>& grad,
                     const ParallelFor& parallel_for) {
  const int64_t N = in.N, M = in.M, D = in.D, Dv = in.Dv, stride = RoundUp(M);
  share_tasks(in.B * in.H, parallel_for, [&](TaskQueue& queue) {
    const Tag tag;
    Head head{};
    head.keys.stride = stride;
    float *v, *d_v, *d_k, *d_q, *factor;
    const Arena arena({{&head.keys.x, D * stride},
                       {&head.keys.sin, D * stride},
                       {&head.keys.cos, D * stride},
                       {&head.query_sin, N * D},
                       {&head.query_cos, N * D},
                       {&head.row, stride},
                       {&factor, stride},
                       {&v, Dv * stride},
                       {&d_v, Dv * stride},
                       {&d_k, D * stride},
                       {&d_q, D * kLanes}});
    for (int64_t t = queue.take(); t >= 0; t = queue.take()) {
      PrepareHead(in, t, head);
      Transpose(in.v + t * M * Dv, M, Dv, stride, v);
      std::fill_n(d_v, Dv * stride, 0.0f);
      std::fill_n(d_k, D * stride, 0.0f);
      for (int64_t n = 0; n < N; ++n) {
        const int64_t end = VisibleEnd(in, t / in.H, n);
        float* d_a = grad.d_a + (t * N + n) * D;
        if (end == 0) {
          std::fill_n(d_a, D, 0.0f);
          continue;
        }
        const Query q = head.query(in, t, n);
        const float* o = grad.o + (t * N + n) * Dv;
        const float* d_o = grad.d_o + (t * N + n) * Dv;
        float delta = 0;  // sum_j p_j dp_j
        for (int64_t c = 0; c < Dv; ++c) delta += o[c] * d_o[c];
        LogitRow(q, head.keys, D, end, head.row);
        Exponentials(end, grad.row_max[t * N + n], head.row);
        const float scale = 1.0f / grad.row_sum[t * N + n];
        std::fill_n(factor, RoundUp(end), 1.0f);
        if (in.dropout.active()) DropRow(in.dropout, t, n, end, factor);
        std::fill_n(d_q, D * kLanes, 0.0f);
        for (int64_t j = 0; j < end; j += kLanes) {
          const int64_t rest = std::min(kLanes, end - j);
          const Vec p = hn::Mul(hn::Load(tag, head.row + j), hn::Set(tag, scale));
          const Vec keep = hn::Load(tag, factor + j);
          const Vec kept = hn::Mul(p, keep);
          Vec dp = hn::Zero(tag);
          for (int64_t c = 0; c < Dv; ++c) {
            const Vec above = hn::Set(tag, d_o[c]);
            const float* from = v + c * stride + j;
            dp =
                hn::MulAdd(above, rest == kLanes ? hn::Load(tag, from) : LoadFirst(from, rest), dp);
            float* to = d_v + c * stride + j;
            hn::Store(hn::MulAdd(kept, above, hn::Load(tag, to)), tag, to);
          }
          const Vec g =
              hn::Mul(hn::Mul(p, hn::Set(tag, kPower)), hn::MulSub(dp, keep, hn::Set(tag, delta)));
          if (rest == kLanes) {
            DistanceGradients<true>(q, head.keys, D, j, rest, g, d_q, d_k);
          } else {
            DistanceGradients<false>(q, head.keys, D, j, rest, g, d_q, d_k);
          }
        }
        for (int64_t d = 0; d < D; ++d) {
          d_a[d] = hn::GetLane(hn::SumOfLanes(tag, hn::Load(tag, d_q + d * kLanes)));
        }
      }
      for (int64_t j = 0; j < M; ++j) {
        for (int64_t d = 0; d < D; ++d) grad.d_b[(t * M + j) * D + d] = d_k[d * stride + j];
        for (int64_t c = 0; c < Dv; ++c) grad.d_v[(t * M + j) * Dv + c] = d_v[c * stride + j];
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

HWY_EXPORT(FourierForward);
HWY_EXPORT(FourierBackward);

void fourier_forward(const FourierInputs<float>& in,
                     const FourierOutputs<float>& out,
                     const ParallelFor& parallel_for) {
  HWY_DISPATCH_TABLE(FourierForward)[simd_chosen().GetIndex()](in, out, parallel_for);
}

void fourier_backward(const FourierInputs<float>& in,
                      const FourierGradients<float>& grad,
                      const ParallelFor& parallel_for) {
  HWY_DISPATCH_TABLE(FourierBackward)[simd_chosen().GetIndex()](in, grad, parallel_for);
}

}  // namespace elliptical::kernels
#endif  // HWY_ONCE
