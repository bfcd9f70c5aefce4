// SPDX-License-Identifier: MIT
//
// What one block of queries of one head contributes to the gradients, scores recomputed. With
// P' = 2^(s - row_max) and r = 1 / row_sum (so that P = P' r has the bits of forward), z the
// dropout factor, and dO' = r dO:
//
//   dP^T = V (scale dO')^T
//   dS^T = P'^T * (z dP^T - delta),  delta = scale r (dot(dO, O) - d_lse)
//   dV  += (z P')^T dO'              dK       += dS^T (q m)              dQs^T += K^T dS^T
//   dq   = dQs * m                   d_metric  = dQs * q
//
// so that normalisation and scale are paid once per query, not once per score.
// Included once per SIMD target (Highway's -inl.h convention).

#if defined(ELLIPTICAL_KERNELS_ATTENTION_GRADIENT_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ELLIPTICAL_KERNELS_ATTENTION_GRADIENT_INL_H_
#undef ELLIPTICAL_KERNELS_ATTENTION_GRADIENT_INL_H_
#else
#define ELLIPTICAL_KERNELS_ATTENTION_GRADIENT_INL_H_
#endif

#include "elliptical/kernels/arena.h"
#include "elliptical/kernels/attention_panel-inl.h"

HWY_BEFORE_NAMESPACE();
namespace elliptical::kernels {
namespace HWY_NAMESPACE {
namespace {

using Gradients = AttentionGradients<float>;

/// Keys whose P and dS against a whole query block are kept at once.
constexpr int64_t kKeyBlock = 48;

/// One thread's memory for a block of queries and a block of keys.
struct Scratch {
  static constexpr int64_t kPanel = kMaxColumns * kLanes, kBlock = kQueryBlock + kLanes;
  /// Row length of p and ds; not a power of two, which would collide in the cache.
  static constexpr int64_t kRowP = kQueryBlock + kLanes + 16;

  int64_t ld_q, ld_v;  ///< row lengths of q_rows and do_rows, whole vectors
  float* q_rows;       ///< (block width, ld_q): q m
  float* do_rows;      ///< (block width, ld_v): dO'
  float* o_rows;       ///< (panel width, ld_v): O
  float* ot;           ///< (Dv, panel width): O^T
  float* qt;           ///< (D, width) per panel: q m scale log2(e), transposed
  float* dot;          ///< (Dv, width) per panel: scale dO', transposed
  float* dqt;          ///< (D, width) per panel: dQs^T
  float* max;          ///< (block width)
  float* delta;        ///< (block width)
  float* p;            ///< (kKeyBlock, kRowP): scores, then z P'
  float* ds;           ///< (kKeyBlock, kRowP): dP, then dS
  float* mask;         ///< (kKeyBlock, panel width) twice; or dropout factors
  float* few_dq;       ///< (kFewQueries, ld_q): dQs of a panel of few queries
  float* keys;         ///< copies of a block of keys and values that can not be read in place
  float* values;
  Arena arena;

  explicit Scratch(const AttentionSizes& sizes)
      : ld_q(round_up(sizes.D, std::max<int64_t>(kLanes, 4))),
        ld_v(round_up(sizes.Dv, std::max<int64_t>(kLanes, 4))),
        arena({{&q_rows, kBlock * ld_q},
               {&do_rows, kBlock * ld_v},
               {&o_rows, kPanel * ld_v},
               {&ot, kPanel * round_up(sizes.Dv, 4)},
               {&qt, kBlock * round_up(sizes.D, 4)},
               {&dot, kBlock * round_up(sizes.Dv, 4)},
               {&dqt, kBlock * round_up(sizes.D, 4)},
               {&max, kBlock},
               {&delta, kBlock},
               {&p, kKeyBlock * kRowP},
               {&ds, kKeyBlock * kRowP},
               {&mask, 2 * kKeyBlock * kPanel},
               {&few_dq, kFewQueries * ld_q},
               {&keys, kKeyBlock * sizes.D},
               {&values, kKeyBlock * sizes.Dv}}) {}
};

/// Where one task adds up dK and dV: the output itself, or a partial sum of the same shape.
struct KeyGradients {
  float *dk, *dv;  ///< (M, D) and (M, Dv)
  int64_t stride_dk, stride_dv;
};

/// delta = sum_i (scale dO'[i]) O[i] - delta, with the terms and in the order in which a tile sums
/// up dP: where O is close to one row of values, dP - delta is small, and so must the difference of
/// their errors be.
void SetDelta(const float* ot, const float* dot, int64_t Dv, int64_t width, float* delta) {
  const Tag tag;
  for (int64_t l = 0; l < width; l += kLanes) {
    Vec sum = hn::Zero(tag);
    for (int64_t i = 0; i < Dv; ++i) {
      sum =
          hn::MulAdd(hn::LoadU(tag, ot + i * width + l), hn::LoadU(tag, dot + i * width + l), sum);
    }
    hn::StoreU(hn::Sub(sum, hn::LoadU(tag, delta + l)), tag, delta + l);
  }
}

/// Copies a panel's queries and output gradients, scaled, in both layouts. Rows that saw no key
/// become zero.
void GatherPanel(const Head& head, const Panel& panel, const Gradients& grad, Scratch& scratch) {
  const Inputs& in = head.in;
  const AttentionSizes& sizes = in.sizes;
  const float scale = static_cast<float>(in.scale);
  float* q_rows = scratch.q_rows + panel.lane * scratch.ld_q;
  float* do_rows = scratch.do_rows + panel.lane * scratch.ld_v;
  float* delta = scratch.delta + panel.lane;
  GatherQueries(head, panel, q_rows, scratch.ld_q);
  for (int64_t l = 0; l < panel.width(); ++l) {
    const int64_t n = panel.n + l, row = head.index() * sizes.N + n;
    float* do_row = do_rows + l * scratch.ld_v;
    float* o_row = scratch.o_rows + l * scratch.ld_v;
    float& max = scratch.max[panel.lane + l];
    delta[l] = 0.0f;
    if (l >= panel.queries || grad.row_sum[row] == 0.0f) {
      std::fill_n(q_rows + l * scratch.ld_q, scratch.ld_q, 0.0f);
      std::fill_n(do_row, scratch.ld_v, 0.0f);
      std::fill_n(o_row, scratch.ld_v, 0.0f);
      max = -kLowest;  // 2^(s - max) = 0
      continue;
    }
    const float inverse = 1.0f / grad.row_sum[row];
    ScaleRow(grad.d_o.row(head.b, head.h, n), grad.d_o.stride_d, sizes.Dv, inverse, do_row);
    std::fill_n(do_row + sizes.Dv, scratch.ld_v - sizes.Dv, 0.0f);
    ScaleRow(grad.o.row(head.b, head.h, n), grad.o.stride_d, sizes.Dv, 1.0f, o_row);
    max = grad.row_max[row];
    if (grad.d_lse) delta[l] = grad.d_lse[row] * inverse * scale;
  }
  if (panel.is_few) {
    for (int64_t l = 0; l < panel.queries; ++l) {
      const Vec dot =
          RowDot(do_rows + l * scratch.ld_v, scratch.o_rows + l * scratch.ld_v, sizes.Dv, scale);
      delta[l] = hn::GetLane(dot) - delta[l];
    }
    return;
  }
  float* qt = scratch.qt + panel.lane * sizes.D;
  float* dot = scratch.dot + panel.lane * sizes.Dv;
  Transpose(q_rows, scratch.ld_q, panel.width(), sizes.D, score_unit(in), qt, panel.width());
  Transpose(do_rows, scratch.ld_v, panel.width(), sizes.Dv, scale, dot, panel.width());
  Transpose(scratch.o_rows, scratch.ld_v, panel.width(), sizes.Dv, 1.0f, scratch.ot, panel.width());
  SetDelta(scratch.ot, dot, sizes.Dv, panel.width(), delta);
}

/// p = z 2^(p - max), ds = 2^(p - max) (z ds - delta), down one column of lanes. Where a key may be
/// hidden, ds is exactly 0 with p, whatever NaN the hidden value brought.
template <bool kMayBeHidden, bool kDropout>
HWY_INLINE void ScoreGradients(float* p,
                               float* ds,
                               int64_t ld,
                               int64_t rows,
                               Vec max,
                               Vec delta,
                               const float* z,
                               int64_t ld_z) {
  const Tag tag;
  for (int64_t j = 0; j < rows; ++j) {
    const Vec probability = Exp2(hn::Sub(hn::LoadU(tag, p + j * ld), max));
    Vec dp = hn::LoadU(tag, ds + j * ld);
    Vec kept = probability;
    if constexpr (kDropout) {
      const Vec factor = hn::LoadU(tag, z + j * ld_z);
      dp = hn::Mul(dp, factor);
      kept = hn::Mul(kept, factor);
    }
    Vec gradient = hn::Mul(probability, hn::Sub(dp, delta));
    if constexpr (kMayBeHidden) {
      gradient = hn::IfThenZeroElse(hn::Eq(probability, hn::Zero(tag)), gradient);
    }
    hn::StoreU(kept, tag, p + j * ld);
    hn::StoreU(gradient, tag, ds + j * ld);
  }
}

/// Scores, dP and dS of one panel against one block of keys, and its dQ.
template <int C>
void PanelGradients(const Head& head,
                    const Panel& panel,
                    const Dropout& dropout,
                    int64_t key_begin,
                    int64_t key_rows,
                    const KeyRows& keys,
                    const KeyRows& values,
                    Scratch& scratch) {
  const AttentionSizes& sizes = head.in.sizes;
  const Tag tag;
  constexpr int64_t kWidth = C * kLanes;
  const int64_t ld = Scratch::kRowP;
  const Sight sight(head, panel, key_begin, key_rows);
  const int64_t rows = sight.rows(panel);
  float* p = scratch.p + panel.lane;
  float* ds = scratch.ds + panel.lane;

  if (panel.is_few) {
    FewKeyProduct(keys.by_row(), rows, scratch.q_rows + panel.lane * scratch.ld_q, scratch.ld_q,
                  panel.queries, sizes.D, score_unit(head.in), p, ld);
    FewKeyProduct(values.by_row(), rows, scratch.do_rows + panel.lane * scratch.ld_v, scratch.ld_v,
                  panel.queries, sizes.Dv, static_cast<float>(head.in.scale), ds, ld);
  } else {
    KeyProduct<C>(keys.by_row(), scratch.qt + panel.lane * sizes.D, sizes.D, sight.end, p, ld);
    KeyProduct<C>(values.by_row(), scratch.dot + panel.lane * sizes.Dv, sizes.Dv, sight.end, ds,
                  ld);
  }
  if (head.masked()) {
    ApplyMasks(head, panel, key_begin, rows, scratch.mask, scratch.mask + kKeyBlock * kWidth, p,
               ld);
  }
  HideFuture(head, panel, sight, key_begin, p, ld);
  if (dropout.active()) DropoutFactors(dropout, head, panel, key_begin, rows, scratch.mask, kWidth);

  for (int c = 0; c < C; ++c) {
    const int64_t lane = c * kLanes, end = sight.end[c];
    const Vec max = hn::LoadU(tag, scratch.max + panel.lane + lane);
    const Vec delta = hn::LoadU(tag, scratch.delta + panel.lane + lane);
    const bool may_be_hidden = head.masked() || sight.full[c] < end;
    if (dropout.active()) {
      ScoreGradients<true, true>(p + lane, ds + lane, ld, end, max, delta, scratch.mask + lane,
                                 kWidth);
    } else if (may_be_hidden) {
      ScoreGradients<true, false>(p + lane, ds + lane, ld, end, max, delta, nullptr, 0);
    } else {
      ScoreGradients<false, false>(p + lane, ds + lane, ld, end, max, delta, nullptr, 0);
    }
    for (int64_t j = end; j < key_rows; ++j) {
      hn::StoreU(hn::Zero(tag), tag, p + j * ld + lane);
      hn::StoreU(hn::Zero(tag), tag, ds + j * ld + lane);
    }
  }

  if (panel.is_few) {
    const auto product =
        key_begin == 0 ? FewValueProduct<Into::kEmpty> : FewValueProduct<Into::kSum>;
    return product(ds, ld, keys.by_row(), rows, panel.queries, sizes.D, nullptr, scratch.few_dq,
                   scratch.ld_q);
  }
  float* dqt = scratch.dqt + panel.lane * sizes.D;
  constexpr int kRows = kTileRows[C - 1];
  if (key_begin == 0) {
    Product<kRows, C, Into::kEmpty>(sizes.D, keys.by_channel(), ds, ld, sight.end, nullptr, dqt,
                                    kWidth);
  } else {
    Product<kRows, C, Into::kSum>(sizes.D, keys.by_channel(), ds, ld, sight.end, nullptr, dqt,
                                  kWidth);
  }
  keys.Restore(ds, ld, sight.end, C, dqt, kWidth);
}

/// out[j, :] += sum_n a[j, n] b[n, :]: dV from P and dO', dK from dS and q m. `width` channels,
/// `first_query(j)` the first query of the block that sees row j.
template <class FirstQuery>
void AddToKeys(const float* a,
               int64_t lda,
               const float* b,
               int64_t ldb,
               int64_t rows,
               int64_t queries,
               int64_t width,
               float* out,
               int64_t ldo,
               const FirstQuery& first_query) {
  ForChannelGroups(width, [&]<int C>(int64_t channel, int64_t last_lanes) HWY_ATTR {
    constexpr int kRows = kTileRows[C - 1];
    for (int64_t j = 0; j < rows; j += kRows) {
      const int64_t from = first_query(j);
      int64_t depth[C];
      for (int c = 0; c < C; ++c) depth[c] = queries - from;
      Product<kRows, C, Into::kSum>(std::min<int64_t>(kRows, rows - j),
                                    Scalars{a + j * lda + from, lda, 1}, b + from * ldb + channel,
                                    ldb, depth, nullptr, out + j * ldo + channel, ldo, last_lanes);
    }
  });
}

/// Queries without gradient: padding, or rows that see no key at all.
void WriteZeroQueries(const Head& head, Slice queries, const Gradients& grad) {
  for (int64_t n = queries.begin; n < queries.end; ++n) {
    std::fill_n(grad.dq.row(head.b, head.h, n), head.in.sizes.D, 0.0f);
    if (grad.d_metric && grad.d_metric.stride_n != 0) {
      std::fill_n(grad.d_metric.row(head.b, head.h, n), head.in.sizes.D, 0.0f);
    }
  }
}

/// dq = dQs m and the metric's gradient dQs q.
void WriteQueryGradients(const Head& head,
                         const Panel& panel,
                         const Gradients& grad,
                         double* d_metric,
                         Scratch& scratch) {
  const Inputs& in = head.in;
  const int64_t D = in.sizes.D, b = head.b, h = head.h;
  float* rows = scratch.few_dq;
  if (!panel.is_few) {
    rows = scratch.q_rows + panel.lane * scratch.ld_q;  // no longer needed
    Transpose(scratch.dqt + panel.lane * D, panel.width(), D, panel.width(), 1.0f, rows,
              scratch.ld_q);
  }
  for (int64_t l = 0; l < panel.queries; ++l) {
    const int64_t n = panel.n + l;
    if (grad.row_sum[head.index() * in.sizes.N + n] == 0.0f) {  // whatever its q and m hold
      WriteZeroQueries(head, {n, n + 1}, grad);
      continue;
    }
    const float* row = rows + l * scratch.ld_q;
    float* dq = grad.dq.row(b, h, n);
    if (!in.metric) {
      std::copy_n(row, D, dq);
      continue;
    }
    const float* m = in.metric.row(b, h, n);
    MultiplyRow(row, 1, m, in.metric.stride_d, D, dq);
    if (!grad.d_metric) continue;
    const float* q = in.q.row(b, h, n);
    if (grad.d_metric.stride_n != 0) {
      MultiplyRow(row, 1, q, in.q.stride_d, D, grad.d_metric.row(b, h, n));
    } else {
      for (int64_t i = 0; i < D; ++i) d_metric[i] += double{row[i]} * q[i * in.q.stride_d];
    }
  }
}

/// Everything one block of queries of one head contributes.
void BlockGradients(const Head& head,
                    Slice queries,
                    const Dropout& dropout,
                    const Gradients& grad,
                    const KeyGradients& to,
                    double* d_metric,
                    Scratch& scratch) {
  const Inputs& in = head.in;
  const AttentionSizes& sizes = in.sizes;
  Slice real{queries.begin, std::clamp(real_queries(in, head.b), queries.begin, queries.end)};
  const int64_t keys_end = real.size() == 0 ? 0 : head.visible(real.end - 1);
  if (keys_end == 0) real.end = real.begin;
  WriteZeroQueries(head, {real.end, queries.end}, grad);
  if (real.size() == 0) return;

  const Panels panels(head, real);
  for (int64_t p = 0; p < panels.count; ++p) GatherPanel(head, panels[p], grad, scratch);
  const int64_t all_see = head.visible(real.begin);
  for (int64_t j = 0; j < keys_end; j += kKeyBlock) {
    const int64_t rows = std::min(kKeyBlock, keys_end - j);
    const bool may_be_hidden = head.masked() || j + rows > all_see;
    const KeyRows keys(in.k, head.b, head.hk, j, rows, sizes.D, may_be_hidden, scratch.keys);
    const KeyRows values(in.v, head.b, head.hk, j, rows, sizes.Dv, false, scratch.values);
    for (int64_t p = 0; p < panels.count; ++p) {
      const Panel panel = panels[p];
      ForColumns(panel.columns, [&]<int C>() HWY_ATTR {
        PanelGradients<C>(head, panel, dropout, j, rows, keys, values, scratch);
      });
    }
    const auto first_query = [&](int64_t row) {
      return in.is_causal
                 ? std::clamp<int64_t>(j + row + sizes.N - sizes.M - real.begin, 0, real.size() - 1)
                 : 0;
    };
    AddToKeys(scratch.p, Scratch::kRowP, scratch.do_rows, scratch.ld_v, rows, real.size(), sizes.Dv,
              to.dv + j * to.stride_dv, to.stride_dv, first_query);
    AddToKeys(scratch.ds, Scratch::kRowP, scratch.q_rows, scratch.ld_q, rows, real.size(), sizes.D,
              to.dk + j * to.stride_dk, to.stride_dk, first_query);
  }
  for (int64_t p = 0; p < panels.count; ++p)
    WriteQueryGradients(head, panels[p], grad, d_metric, scratch);
}

}  // namespace
// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace elliptical::kernels
HWY_AFTER_NAMESPACE();

#endif
