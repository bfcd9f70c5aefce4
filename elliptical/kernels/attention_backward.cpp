// SPDX-License-Identifier: MIT
//
// Gradients of attention, scores recomputed. With P' = 2^(s - row_max) and r = 1 / row_sum (so that
// P = P' r has the bits of forward), z the dropout factor, and dO' = r dO:
//
//   dP^T = V (scale dO')^T          dS^T = P'^T * (z dP^T - delta),  delta = scale r (dot(dO, O) -
//   d_lse) dV  += (z P')^T dO'             dK  += dS^T (q m)                dQs^T += K^T dS^T dq =
//   dQs * m                  d_metric = dQs * q
//
// so that normalisation and scale are paid once per query, not once per score. One task owns the
// keys of one head: it walks over blocks of queries in a fixed order, and nothing depends on the
// number of threads.
#include "elliptical/kernels/simd_impl.h"  // before Highway

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "elliptical/kernels/attention_backward.cpp"
#include "hwy/foreach_target.h"
// After foreach_target, which re-includes this file:
#include <vector>

#include "elliptical/kernels/attention_panel-inl.h"
#include "hwy/aligned_allocator.h"

HWY_BEFORE_NAMESPACE();
namespace elliptical::kernels {
namespace HWY_NAMESPACE {
namespace {

using Gradients = AttentionGradients<float>;

/// Keys whose P and dS against a whole query block are kept at once.
constexpr int64_t kKeyBlock = 48;

/// One thread's memory for a block of queries and a block of keys.
struct Scratch {
  int64_t ld_q, ld_v;  ///< row lengths of q_rows and do_rows, whole vectors
  int64_t ld_p;  ///< row length of p and ds; not a power of two, which would collide in the cache
  hwy::AlignedFreeUniquePtr<float[]> memory;
  float* q_rows;   ///< (block width, ld_q): q m
  float* do_rows;  ///< (block width, ld_v): dO'
  float* qt;       ///< (D, width) per panel: q m scale log2(e), transposed
  float* dot;      ///< (Dv, width) per panel: scale dO', transposed
  float* dqt;      ///< (D, width) per panel: dQs^T
  float* max;      ///< (block width)
  float* delta;    ///< (block width)
  float* p;        ///< (kKeyBlock, ld_p): scores, then z P'
  float* ds;       ///< (kKeyBlock, ld_p): dP, then dS
  float* mask;     ///< (kKeyBlock, panel width) twice; or dropout factors
  float* keys;     ///< copy of a block of keys, where they can not be read in place
  float* values;
  std::vector<double> d_metric;  ///< (D)

  explicit Scratch(const AttentionSizes& sizes)
      : ld_q(round_up(sizes.D, std::max<int64_t>(kLanes, 4))),
        ld_v(round_up(sizes.Dv, std::max<int64_t>(kLanes, 4))),
        ld_p(kQueryBlock + kLanes + 16),
        d_metric(static_cast<size_t>(sizes.D)) {
    constexpr int64_t kPanel = kMaxColumns * kLanes, kBlock = kQueryBlock + kLanes;
    const int64_t depth = round_up(sizes.D, 4), depth_v = round_up(sizes.Dv, 4);
    const int64_t counts[] = {kBlock * ld_q,
                              kBlock * ld_v,
                              kBlock * depth,
                              kBlock * depth_v,
                              kBlock * depth,
                              kBlock,
                              kBlock,
                              kKeyBlock * ld_p,
                              kKeyBlock * ld_p,
                              2 * kKeyBlock * kPanel,
                              kKeyBlock * sizes.D,
                              kKeyBlock * sizes.Dv};
    int64_t total = 0;
    for (const int64_t count : counts) total += round_up(count, 16);
    memory = hwy::AllocateAligned<float>(static_cast<size_t>(total));
    if (!memory) throw std::bad_alloc();
    float* next = memory.get();
    float** const parts[] = {&q_rows, &do_rows, &qt, &dot,  &dqt,  &max,
                             &delta,  &p,       &ds, &mask, &keys, &values};
    for (size_t i = 0; i < std::size(parts); ++i) {
      *parts[i] = next;
      next += round_up(counts[i], 16);
    }
  }
};

/// Where one task adds up dK and dV: the output itself, or a partial sum of the same shape.
struct KeyGradients {
  float *dk, *dv;  ///< (M, D) and (M, Dv)
  int64_t stride_dk, stride_dv;
};

/// Copies a panel's queries and output gradients, scaled, in both layouts. Rows that saw no key
/// become zero.
void PackPanel(const Head& head, const Panel& panel, const Gradients& grad, Scratch& scratch) {
  const Inputs& in = head.in;
  const AttentionSizes& sizes = in.sizes;
  const float scale = static_cast<float>(in.scale);
  float* q_rows = scratch.q_rows + panel.lane * scratch.ld_q;
  float* do_rows = scratch.do_rows + panel.lane * scratch.ld_v;
  PackQueries(head, panel, q_rows, scratch.ld_q);
  for (int64_t l = 0; l < panel.width(); ++l) {
    const int64_t n = panel.n + l, row = head.index() * sizes.N + n;
    float* do_row = do_rows + l * scratch.ld_v;
    float& max = scratch.max[panel.lane + l];
    float& delta = scratch.delta[panel.lane + l];
    if (l >= panel.queries || grad.row_sum[row] == 0.0f) {
      std::fill_n(q_rows + l * scratch.ld_q, scratch.ld_q, 0.0f);
      std::fill_n(do_row, scratch.ld_v, 0.0f);
      max = -kLowest;  // 2^(s - max) = 0
      delta = 0.0f;
      continue;
    }
    const float inverse = 1.0f / grad.row_sum[row];
    const float* d_o = grad.d_o.row(head.b, head.h, n);
    ScaleRow(d_o, grad.d_o.stride_d, sizes.Dv, inverse, do_row);
    std::fill_n(do_row + sizes.Dv, scratch.ld_v - sizes.Dv, 0.0f);
    max = grad.row_max[row];
    delta =
        DotRow(d_o, grad.d_o.stride_d, grad.o.row(head.b, head.h, n), grad.o.stride_d, sizes.Dv);
    if (grad.d_lse) delta -= grad.d_lse[row];
    delta *= inverse * scale;
  }
  float* qt = scratch.qt + panel.lane * sizes.D;
  float* dot = scratch.dot + panel.lane * sizes.Dv;
  Transpose(q_rows, scratch.ld_q, panel.width(), sizes.D, score_unit(in), qt, panel.width());
  Transpose(do_rows, scratch.ld_v, panel.width(), sizes.Dv, scale, dot, panel.width());
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
  const int64_t ld = scratch.ld_p;
  const Sight sight(head, panel, key_begin, key_rows);
  const int64_t rows = sight.rows(panel);
  float* p = scratch.p + panel.lane;
  float* ds = scratch.ds + panel.lane;

  KeyProduct<C>(keys.by_row(), scratch.qt + panel.lane * sizes.D, sizes.D, sight.end, p, ld);
  if (head.masked()) {
    ApplyMasks(head, panel, key_begin, rows, scratch.mask, scratch.mask + kKeyBlock * kWidth, p,
               ld);
  }
  HideFuture(head, panel, sight, key_begin, p, ld);
  KeyProduct<C>(values.by_row(), scratch.dot + panel.lane * sizes.Dv, sizes.Dv, sight.end, ds, ld);
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
  const int64_t vectors = ceil_div(width, kLanes), groups = ceil_div(vectors, kMaxColumns);
  for (int64_t group = 0; group < groups; ++group) {
    const Slice slice = balanced_slice(vectors, groups, group);
    const int64_t channel = slice.begin * kLanes;
    const int64_t last_lanes = std::min(kLanes, width - (slice.end - 1) * kLanes);
    ForColumns(static_cast<int>(slice.size()), [&]<int C>() HWY_ATTR {
      constexpr int kRows = kTileRows[C - 1];
      for (int64_t j = 0; j < rows; j += kRows) {
        const int64_t from = first_query(j);
        int64_t depth[C];
        for (int c = 0; c < C; ++c) depth[c] = queries - from;
        Product<kRows, C, Into::kSum>(std::min<int64_t>(kRows, rows - j),
                                      Scalars{a + j * lda + from, lda, 1}, b + from * ldb + channel,
                                      ldb, depth, nullptr, out + j * ldo + channel, ldo,
                                      last_lanes);
      }
    });
  }
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
  float* rows = scratch.q_rows + panel.lane * scratch.ld_q;  // no longer needed
  Transpose(scratch.dqt + panel.lane * D, panel.width(), D, panel.width(), 1.0f, rows,
            scratch.ld_q);
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

  const Panels panels(real);
  for (int64_t p = 0; p < panels.count; ++p) PackPanel(head, panels[p], grad, scratch);
  const int64_t all_see = head.visible(real.begin);
  for (int64_t j = 0; j < keys_end; j += kKeyBlock) {
    const int64_t rows = std::min(kKeyBlock, keys_end - j);
    const bool may_be_hidden = head.masked() || j + rows > all_see;
    const KeyRows keys(in.k.row(head.b, head.hk, j), in.k.stride_n, in.k.stride_d, rows, sizes.D,
                       may_be_hidden, scratch.keys);
    const KeyRows values(in.v.row(head.b, head.hk, j), in.v.stride_n, in.v.stride_d, rows, sizes.Dv,
                         false, scratch.values);
    for (int64_t p = 0; p < panels.count; ++p) {
      const Panel panel = panels[p];
      ForColumns(panel.columns, [&]<int C>() HWY_ATTR {
        PanelGradients<C>(head, panel, dropout, j, rows, keys, values, scratch);
      });
    }
    const auto first_query = [&](int64_t row) {
      return in.is_causal ? std::clamp<int64_t>(j + row + sizes.N - sizes.M - real.begin, 0,
                                                panels.width() - 1)
                          : 0;
    };
    AddToKeys(scratch.p, scratch.ld_p, scratch.do_rows, scratch.ld_v, rows, panels.width(),
              sizes.Dv, to.dv + j * to.stride_dv, to.stride_dv, first_query);
    AddToKeys(scratch.ds, scratch.ld_p, scratch.q_rows, scratch.ld_q, rows, panels.width(), sizes.D,
              to.dk + j * to.stride_dk, to.stride_dk, first_query);
  }
  for (int64_t p = 0; p < panels.count; ++p)
    WriteQueryGradients(head, panels[p], grad, d_metric, scratch);
}

void ZeroRows(float* rows, int64_t stride, int64_t count, int64_t width) {
  for (int64_t j = 0; j < count; ++j) std::fill_n(rows + j * stride, width, 0.0f);
}

/// The work of one backward call: tasks, and the partial sums they leave.
class Backward {
 public:
  Backward(const Inputs& in, const Gradients& grad)
      : in_(in),
        grad_(grad),
        dropout_(in.dropout_p, in.dropout_seed),
        blocks_(ceil_div(in.sizes.N, kQueryBlock)),
        segments_(Segments(in.sizes, blocks_)),
        partial_size_(in.sizes.M * (in.sizes.D + in.sizes.Dv)),
        metric_shared_(grad.d_metric && grad.d_metric.stride_n == 0) {
    const AttentionSizes& sizes = in.sizes;
    partial_ = hwy::AllocateAligned<float>(static_cast<size_t>(
        std::max<int64_t>(1, (segments_ - 1) * sizes.B * sizes.Hk * partial_size_)));
    if (!partial_) throw std::bad_alloc();
    if (metric_shared_) {
      d_metric_.assign(static_cast<size_t>(sizes.B * sizes.H * blocks_ * sizes.D), 0.0);
    }
  }

  void Run(const ParallelFor& parallel_for) {
    const AttentionSizes& sizes = in_.sizes;
    const int64_t key_heads = sizes.B * sizes.Hk;
    share_tasks(key_heads * segments_, parallel_for, [&](TaskQueue& queue) {
      Scratch scratch(sizes);
      for (int64_t task = queue.take(); task >= 0; task = queue.take()) {
        RunTask(task / segments_, task % segments_, scratch);
      }
    });
    if (segments_ > 1) {
      parallel_for(key_heads, [&](int64_t begin, int64_t end) {
        for (int64_t key_head = begin; key_head < end; ++key_head) AddPartials(key_head);
      });
    }
    if (metric_shared_) AddMetricPartials();
  }

 private:
  /// Few heads: the queries of a head are split too, so that there is work for several threads.
  static int64_t Segments(const AttentionSizes& sizes, int64_t blocks) {
    constexpr int64_t kEnoughTasks = 8;
    const int64_t heads = std::max<int64_t>(1, sizes.B * sizes.Hk);
    return std::clamp<int64_t>(kEnoughTasks / heads, 1, std::max<int64_t>(1, blocks));
  }

  KeyGradients Target(int64_t key_head, int64_t segment) const {
    const AttentionSizes& sizes = in_.sizes;
    if (segment == 0) {
      const int64_t b = key_head / sizes.Hk, hk = key_head % sizes.Hk;
      return {grad_.dk.row(b, hk, 0), grad_.dv.row(b, hk, 0), grad_.dk.stride_n, grad_.dv.stride_n};
    }
    float* partial = partial_.get() + (key_head * (segments_ - 1) + segment - 1) * partial_size_;
    return {partial, partial + sizes.M * sizes.D, sizes.D, sizes.Dv};
  }

  void RunTask(int64_t key_head, int64_t segment, Scratch& scratch) {
    const AttentionSizes& sizes = in_.sizes;
    const KeyGradients to = Target(key_head, segment);
    ZeroRows(to.dk, to.stride_dk, sizes.M, sizes.D);
    ZeroRows(to.dv, to.stride_dv, sizes.M, sizes.Dv);
    const int64_t b = key_head / sizes.Hk, hk = key_head % sizes.Hk, group = sizes.H / sizes.Hk;
    const Slice mine = balanced_slice(blocks_, segments_, segment);
    for (int64_t h = hk * group; h < (hk + 1) * group; ++h) {
      const Head head(in_, b, h);
      for (int64_t i = mine.begin; i < mine.end; ++i) {
        const int64_t block = zigzag(i, blocks_);
        double* d_metric = d_metric_.empty()
                               ? nullptr
                               : d_metric_.data() + (head.index() * blocks_ + block) * sizes.D;
        BlockGradients(head, query_slice(sizes.N, kLanes, blocks_, block), dropout_, grad_, to,
                       d_metric, scratch);
      }
    }
  }

  void AddPartials(int64_t key_head) const {
    const AttentionSizes& sizes = in_.sizes;
    const KeyGradients to = Target(key_head, 0);
    for (int64_t segment = 1; segment < segments_; ++segment) {
      const KeyGradients from = Target(key_head, segment);
      for (int64_t j = 0; j < sizes.M; ++j) {
        for (int64_t i = 0; i < sizes.D; ++i)
          to.dk[j * to.stride_dk + i] += from.dk[j * sizes.D + i];
        for (int64_t i = 0; i < sizes.Dv; ++i)
          to.dv[j * to.stride_dv + i] += from.dv[j * sizes.Dv + i];
      }
    }
  }

  void AddMetricPartials() const {
    const AttentionSizes& sizes = in_.sizes;
    for (int64_t bh = 0; bh < sizes.B * sizes.H; ++bh) {
      float* out = grad_.d_metric.row(bh / sizes.H, bh % sizes.H, 0);
      for (int64_t i = 0; i < sizes.D; ++i) {
        double sum = 0.0;
        for (int64_t block = 0; block < blocks_; ++block) {
          sum += d_metric_[static_cast<size_t>((bh * blocks_ + block) * sizes.D + i)];
        }
        out[i] = static_cast<float>(sum);
      }
    }
  }

  const Inputs& in_;
  const Gradients& grad_;
  const Dropout dropout_;
  const int64_t blocks_, segments_, partial_size_;
  const bool metric_shared_;                    ///< by all queries: its gradient is a sum over them
  hwy::AlignedFreeUniquePtr<float[]> partial_;  ///< dK and dV of all segments but the first
  std::vector<double> d_metric_;  ///< (B * H, blocks, D), only for a metric shared by all queries
};

void RunBackward(const Inputs& in, const Gradients& grad, const ParallelFor& parallel_for) {
  Backward(in, grad).Run(parallel_for);
}

}  // namespace
// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace elliptical::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace elliptical::kernels {

HWY_EXPORT(RunBackward);

void attention_backward(const AttentionInputs<float>& in,
                        const AttentionGradients<float>& grad,
                        const ParallelFor& parallel_for) {
  HWY_DISPATCH_TABLE(RunBackward)[simd_chosen().GetIndex()](in, grad, parallel_for);
}

}  // namespace elliptical::kernels
#endif  // HWY_ONCE
