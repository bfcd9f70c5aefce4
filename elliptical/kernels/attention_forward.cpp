// SPDX-License-Identifier: MIT
//
// o = softmax(scale q^T M k) v without the N x M scores ("flash" attention with a running maximum),
// queries in the vector lanes: S^T and O^T are computed, so that maxima, sums and rescaling are
// plain vertical operations and K and V are read where they are. The metric costs one
// multiplication per query element, while queries are gathered.
#include "elliptical/kernels/simd_impl.h"  // before Highway

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "elliptical/kernels/attention_forward.cpp"
#include "hwy/foreach_target.h"
// After foreach_target, which re-includes this file:
#include "elliptical/kernels/arena.h"
#include "elliptical/kernels/attention_panel-inl.h"
#include "hwy/contrib/math/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace elliptical::kernels {
namespace HWY_NAMESPACE {
namespace {

/// Keys whose scores are kept at once: with the values they fit the second-level cache, with the
/// scores of one panel the first. Longer blocks are a little faster (256: 1 to 4 %), but sums over
/// that many terms lose more digits than a composite computation does.
constexpr int64_t kKeyBlock = 128;

/// One thread's memory: D and Dv wide copies of a query block, and the tiles of one panel.
struct Scratch {
  static constexpr int64_t kPanel = kMaxColumns * kLanes, kBlock = kQueryBlock + kLanes;

  int64_t ld_rows;  ///< row length of `rows`
  float* rows;      ///< (panel width, ld_rows): a panel with queries as rows
  float* qt;        ///< (D, width) per panel: q m scale log2(e), transposed
  float* ot;        ///< (Dv, width) per panel: unnormalised O^T
  float* max;       ///< (block width): running maximum of s log2(e)
  float* sum;       ///< (block width): running sum of 2^(s - max)
  float* s;         ///< (kKeyBlock, panel width): scores, then probabilities
  float* mask;      ///< (kKeyBlock, panel width) twice; or dropout factors
  float* few_q;     ///< (kLanes, ld_rows): q m of a panel of few queries
  float* few_o;     ///< (kFewQueries, ld_rows): its unnormalised O
  float* keys;      ///< copies of a block of keys and values that can not be read in place
  float* values;
  Arena arena;

  explicit Scratch(const AttentionSizes& sizes)
      : ld_rows(round_up(std::max(sizes.D, sizes.Dv), 4)),
        arena({{&rows, kPanel * ld_rows},
               {&qt, kBlock * round_up(sizes.D, 4)},
               {&ot, kBlock * round_up(sizes.Dv, 4)},
               {&max, kBlock},
               {&sum, kBlock},
               {&s, kKeyBlock * kPanel},
               {&mask, 2 * kKeyBlock * kPanel},
               {&few_q, kLanes * ld_rows},
               {&few_o, kFewQueries * ld_rows},
               {&keys, kKeyBlock * sizes.D},
               {&values, kKeyBlock * sizes.Dv}}) {}
};

/// max(start, s[0], ..., s[rows - 1]) in each lane.
HWY_INLINE Vec ColumnMax(const float* s, int64_t ld, int64_t rows, Vec start) {
  const Tag tag;
  Vec m0 = start, m1 = start;
  int64_t j = 0;
  for (; j + 2 <= rows; j += 2) {
    m0 = hn::Max(hn::LoadU(tag, s + j * ld), m0);
    m1 = hn::Max(hn::LoadU(tag, s + (j + 1) * ld), m1);
  }
  if (j < rows) m0 = hn::Max(hn::LoadU(tag, s + j * ld), m0);
  return hn::Max(m0, m1);
}

/// s = 2^(s - max), returns the sum over rows.
HWY_INLINE Vec ColumnExp2(float* s, int64_t ld, int64_t rows, Vec max) {
  const Tag tag;
  Vec sum0 = hn::Zero(tag), sum1 = hn::Zero(tag);
  int64_t j = 0;
  for (; j + 2 <= rows; j += 2) {
    const Vec p0 = Exp2(hn::Sub(hn::LoadU(tag, s + j * ld), max));
    const Vec p1 = Exp2(hn::Sub(hn::LoadU(tag, s + (j + 1) * ld), max));
    sum0 = hn::Add(sum0, p0);
    sum1 = hn::Add(sum1, p1);
    hn::StoreU(p0, tag, s + j * ld);
    hn::StoreU(p1, tag, s + (j + 1) * ld);
  }
  if (j < rows) {
    const Vec p = Exp2(hn::Sub(hn::LoadU(tag, s + j * ld), max));
    sum0 = hn::Add(sum0, p);
    hn::StoreU(p, tag, s + j * ld);
  }
  return hn::Add(sum0, sum1);
}

/// Takes one block of keys into the running softmax of one panel.
template <int C>
void AttendBlock(const Head& head,
                 const Panel& panel,
                 const Dropout& dropout,
                 int64_t key_begin,
                 int64_t key_rows,
                 const KeyRows& keys,
                 const KeyRows& values,
                 Scratch& scratch) {
  const AttentionSizes& sizes = head.in.sizes;
  const Sight sight(head, panel, key_begin, key_rows);
  const int64_t rows = sight.rows(panel);
  float* ot = scratch.ot + panel.lane * sizes.Dv;
  if (rows == 0) return;
  const Tag tag;
  constexpr int64_t kWidth = C * kLanes;
  float* s = scratch.s;

  if (panel.is_few) {
    FewKeyProduct(keys.by_row(), rows, scratch.few_q, scratch.ld_rows, panel.queries, sizes.D,
                  score_unit(head.in), s, kWidth);
  } else {
    KeyProduct<C>(keys.by_row(), scratch.qt + panel.lane * sizes.D, sizes.D, sight.end, s, kWidth);
  }
  if (head.masked()) {
    ApplyMasks(head, panel, key_begin, rows, scratch.mask, scratch.mask + kKeyBlock * kWidth, s,
               kWidth);
  }
  HideFuture(head, panel, sight, key_begin, s, kWidth);

  HWY_ALIGN float shrink[kWidth];  // what the new maximum makes of sums so far
  for (int c = 0; c < C; ++c) {
    float* max = scratch.max + panel.lane + c * kLanes;
    float* sum = scratch.sum + panel.lane + c * kLanes;
    const Vec old_max = hn::LoadU(tag, max);
    const Vec new_max = ColumnMax(s + c * kLanes, kWidth, sight.end[c], old_max);
    const Vec factor = Exp2(hn::Sub(old_max, new_max));
    const Vec block_sum = ColumnExp2(s + c * kLanes, kWidth, sight.end[c], new_max);
    hn::StoreU(new_max, tag, max);
    hn::StoreU(hn::MulAdd(hn::LoadU(tag, sum), factor, block_sum), tag, sum);
    hn::StoreU(factor, tag, shrink + c * kLanes);
  }
  if (dropout.active()) {
    DropoutFactors(dropout, head, panel, key_begin, rows, scratch.mask, kWidth);
    for (int64_t i = 0; i < rows * kWidth; ++i) s[i] *= scratch.mask[i];
  }

  if (panel.is_few) {
    const auto product =
        key_begin == 0 ? FewValueProduct<Into::kEmpty> : FewValueProduct<Into::kShrunk>;
    return product(s, kWidth, values.by_row(), rows, panel.queries, sizes.Dv, shrink, scratch.few_o,
                   scratch.ld_rows);
  }
  constexpr int kRows = kTileRows[C - 1];
  if (key_begin == 0) {
    Product<kRows, C, Into::kEmpty>(sizes.Dv, values.by_channel(), s, kWidth, sight.end, nullptr,
                                    ot, kWidth);
  } else {
    Product<kRows, C, Into::kShrunk>(sizes.Dv, values.by_channel(), s, kWidth, sight.end, shrink,
                                     ot, kWidth);
  }
  values.Restore(s, kWidth, sight.end, C, ot, kWidth);
}

/// qt = (q m)^T * unit, where possible without a copy of the rows in between.
void GatherPanel(const Head& head, const Panel& panel, Scratch& scratch) {
  const Inputs& in = head.in;
  if (panel.is_few) return GatherQueries(head, panel, scratch.few_q, scratch.ld_rows);
  const int64_t D = in.sizes.D, width = panel.width();
  float* qt = scratch.qt + panel.lane * D;
  const bool whole_blocks = panel.queries == width && D % 4 == 0;
  if (whole_blocks && in.q.stride_d == 1 && (!in.metric || in.metric.stride_d == 1)) {
    const float* q = in.q.row(head.b, head.h, panel.n);
    const float* m = in.metric ? in.metric.row(head.b, head.h, panel.n) : nullptr;
    Transpose(q, in.q.stride_n, m, in.metric.stride_n, width, D, score_unit(in), qt, width);
  } else {
    GatherQueries(head, panel, scratch.rows, scratch.ld_rows);
    Transpose(scratch.rows, scratch.ld_rows, width, D, score_unit(in), qt, width);
  }
}

/// o = O / sum, and the statistics of each row.
void WritePanel(const Head& head,
                const Panel& panel,
                const AttentionOutputs<float>& out,
                Scratch& scratch) {
  const int64_t Dv = head.in.sizes.Dv, width = panel.width();
  const Tag tag;
  const float* max = scratch.max + panel.lane;
  const float* sum = scratch.sum + panel.lane;
  HWY_ALIGN float inverse[kMaxColumns * kLanes], lse[kMaxColumns * kLanes];
  for (int64_t l = 0; l < width; l += kLanes) {
    const Vec total = hn::LoadU(tag, sum + l);
    const auto empty = hn::Eq(total, hn::Zero(tag));
    hn::StoreU(hn::IfThenZeroElse(empty, hn::Div(hn::Set(tag, 1.0f), total)), tag, inverse + l);
    const Vec log_sum = hn::MulAdd(hn::LoadU(tag, max + l), hn::Set(tag, static_cast<float>(kLn2)),
                                   hn::Log(tag, total));
    hn::StoreU(hn::IfThenElse(empty, hn::Set(tag, kHidden), log_sum), tag, lse + l);
  }
  const float* ot = scratch.ot + panel.lane * Dv;
  if (panel.is_few) {
    for (int64_t l = 0; l < panel.queries; ++l) {
      ScaleRow(scratch.few_o + l * scratch.ld_rows, 1, Dv, inverse[l],
               out.o.row(head.b, head.h, panel.n + l));
    }
  } else if (panel.queries == width && Dv % 4 == 0) {
    float* o = out.o.row(head.b, head.h, panel.n);
    Transpose(ot, width, inverse, 0, Dv, width, 1.0f, o, out.o.stride_n);
  } else {
    Transpose(ot, width, inverse, 0, Dv, width, 1.0f, scratch.rows, scratch.ld_rows);
    for (int64_t l = 0; l < panel.queries; ++l) {
      std::copy_n(scratch.rows + l * scratch.ld_rows, Dv, out.o.row(head.b, head.h, panel.n + l));
    }
  }
  const int64_t first = head.index() * head.in.sizes.N + panel.n;
  if (out.lse) std::copy_n(lse, panel.queries, out.lse + first);
  if (out.row_max) std::copy_n(max, panel.queries, out.row_max + first);
  if (out.row_sum) std::copy_n(sum, panel.queries, out.row_sum + first);
}

/// Rows that are padding: o = 0.
void WritePadding(const Head& head, Slice queries, const AttentionOutputs<float>& out) {
  for (int64_t n = queries.begin; n < queries.end; ++n) {
    const int64_t row = head.index() * head.in.sizes.N + n;
    std::fill_n(out.o.row(head.b, head.h, n), head.in.sizes.Dv, 0.0f);
    if (out.lse) out.lse[row] = kHidden;
    if (out.row_max) out.row_max[row] = 0.0f;
    if (out.row_sum) out.row_sum[row] = 0.0f;
  }
}

/// All of attention for one block of queries of one head.
void AttendQueries(const Head& head,
                   Slice queries,
                   const Dropout& dropout,
                   const AttentionOutputs<float>& out,
                   Scratch& scratch) {
  const Inputs& in = head.in;
  const AttentionSizes& sizes = in.sizes;
  const Slice real{queries.begin, std::clamp(real_queries(in, head.b), queries.begin, queries.end)};
  WritePadding(head, {real.end, queries.end}, out);
  if (real.size() == 0) return;

  const Panels panels(head, real);
  for (int64_t p = 0; p < panels.count; ++p) {
    const Panel panel = panels[p];
    GatherPanel(head, panel, scratch);
    if (head.visible(panel.n + panel.queries - 1) == 0) {  // AttendBlock will not come here
      std::fill_n(scratch.ot + panel.lane * sizes.Dv, panel.width() * sizes.Dv, 0.0f);
      std::fill_n(scratch.few_o, panels.few * scratch.ld_rows, 0.0f);
    }
  }
  std::fill_n(scratch.max, panels.width(), kLowest);
  std::fill_n(scratch.sum, panels.width(), 0.0f);

  const int64_t all_see = head.visible(real.begin), keys_end = head.visible(real.end - 1);
  for (int64_t j = 0; j < keys_end; j += kKeyBlock) {
    const int64_t rows = std::min(kKeyBlock, keys_end - j);
    const bool may_be_hidden = head.masked() || j + rows > all_see;
    const KeyRows keys(in.k, head.b, head.hk, j, rows, sizes.D, false, scratch.keys);
    const KeyRows values(in.v, head.b, head.hk, j, rows, sizes.Dv, may_be_hidden, scratch.values);
    for (int64_t p = 0; p < panels.count; ++p) {
      const Panel panel = panels[p];
      ForColumns(panel.columns, [&]<int C>() HWY_ATTR {
        AttendBlock<C>(head, panel, dropout, j, rows, keys, values, scratch);
      });
    }
  }
  for (int64_t p = 0; p < panels.count; ++p) WritePanel(head, panels[p], out, scratch);
}

void Forward(const Inputs& in,
             const AttentionOutputs<float>& out,
             const ParallelFor& parallel_for) {
  const AttentionSizes& sizes = in.sizes;
  const Dropout dropout(in.dropout_p, in.dropout_seed);
  // A task is a run of query blocks of one head, the whole head where there are many: its keys and
  // values are then read from memory once.
  constexpr int64_t kEnoughTasks = 32;
  const int64_t heads = sizes.B * sizes.H, blocks = ceil_div(sizes.N, kQueryBlock);
  const int64_t pieces =
      heads == 0 || blocks == 0 ? 0 : std::clamp<int64_t>(kEnoughTasks / heads, 1, blocks);
  share_tasks(heads * pieces, parallel_for, [&](TaskQueue& queue) {
    Scratch scratch(sizes);
    for (int64_t task = queue.take(); task >= 0; task = queue.take()) {
      const Head head(in, task / pieces / sizes.H, task / pieces % sizes.H);
      const Slice mine = balanced_slice(blocks, pieces, task % pieces);
      for (int64_t block = mine.begin; block < mine.end; ++block) {
        AttendQueries(head, query_slice(sizes.N, kLanes, blocks, block), dropout, out, scratch);
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

HWY_EXPORT(Forward);

void attention_forward(const AttentionInputs<float>& in,
                       const AttentionOutputs<float>& out,
                       const ParallelFor& parallel_for) {
  HWY_DISPATCH_TABLE(Forward)[simd_chosen().GetIndex()](in, out, parallel_for);
}

}  // namespace elliptical::kernels
#endif  // HWY_ONCE
