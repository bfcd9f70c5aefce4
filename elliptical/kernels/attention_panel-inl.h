// SPDX-License-Identifier: MIT
//
// What forward and backward share: a *panel* is up to kMaxColumns vectors of neighbouring queries
// of one head, kept transposed (queries in the lanes). This file gathers panels, computes their
// scores S^T against a block of keys (the same bits in both directions) and hides what causal
// order, padding or a mask hides. Included once per SIMD target (Highway's -inl.h convention).

#if defined(ELLIPTICAL_KERNELS_ATTENTION_PANEL_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef ELLIPTICAL_KERNELS_ATTENTION_PANEL_INL_H_
#undef ELLIPTICAL_KERNELS_ATTENTION_PANEL_INL_H_
#else
#define ELLIPTICAL_KERNELS_ATTENTION_PANEL_INL_H_
#endif

#include <cmath>
#include <limits>

#include "elliptical/kernels/attention_plan.h"
#include "elliptical/kernels/dropout.h"
#include "elliptical/kernels/exp2-inl.h"
#include "elliptical/kernels/few_queries-inl.h"
#include "elliptical/kernels/key_rows-inl.h"
#include "elliptical/kernels/philox-inl.h"
#include "elliptical/kernels/rows-inl.h"
#include "elliptical/kernels/tile-inl.h"
#include "elliptical/kernels/visible.h"
#include "hwy/cache_control.h"

HWY_BEFORE_NAMESPACE();
namespace elliptical::kernels {
namespace HWY_NAMESPACE {

using Inputs = AttentionInputs<float>;

inline constexpr float kHidden = -std::numeric_limits<float>::infinity();
inline constexpr float kLowest = std::numeric_limits<float>::lowest();
inline constexpr double kLog2E = 1.4426950408889634;
inline constexpr double kLn2 = 0.6931471805599453;

/// One head of one batch item.
struct Head {
  const Inputs& in;
  int64_t b, h, hk;

  Head(const Inputs& inputs, int64_t batch, int64_t head)
      : in(inputs), b(batch), h(head), hk(head / (inputs.sizes.H / inputs.sizes.Hk)) {}
  int64_t index() const { return b * in.sizes.H + h; }
  bool masked() const { return in.mask_add || in.mask_keep; }
  /// Query n may see keys [0, visible(n)); also defined for the lanes behind the last query.
  int64_t visible(int64_t n) const {
    const int64_t keys = real_keys(in, b);
    return in.is_causal ? std::clamp<int64_t>(n + 1 + in.sizes.M - in.sizes.N, 0, keys) : keys;
  }
  /// Whether all of these queries see the same keys.
  bool nothing_hidden(Slice queries) const {
    return !masked() && visible(queries.begin) == visible(queries.end - 1);
  }
};

/// Scores are kept in units of log2: s log2(e) = unit * dot(q m, k).
inline float score_unit(const Inputs& in) { return static_cast<float>(in.scale * kLog2E); }

/// Up to kMaxColumns vectors of queries, the first being query `n`; `lane` is its offset in the
/// query block.
struct Panel {
  int columns;
  int64_t lane;
  int64_t n;
  int64_t queries;  ///< real ones; the lanes behind them are zero queries
  bool is_few;      ///< one column of few queries: products have channels in the lanes

  int64_t width() const { return columns * kLanes; }
};

/// The panels of a query block, as equal as possible (13 vectors are 4+3+3+3, not 4+4+4+1). A few
/// queries behind the last whole vector are a panel of their own, where no key is hidden from any.
struct Panels {
  Slice queries;
  int64_t vectors, few, count;

  Panels(const Head& head, Slice block)
      : queries(block), vectors(ceil_div(block.size(), kLanes)), few(0) {
    const int64_t left_over = block.size() % kLanes;
    if (left_over > 0 && left_over <= kFewQueries && few_queries_apply(head.in.sizes) &&
        head.nothing_hidden(block)) {
      few = left_over;
    }
    count = ceil_div(whole_vectors(), kMaxColumns) + (few > 0 ? 1 : 0);
  }
  int64_t width() const { return vectors * kLanes; }
  Panel operator[](int64_t index) const {
    if (few > 0 && index == count - 1) {
      const int64_t lane = whole_vectors() * kLanes;
      return {1, lane, queries.begin + lane, few, true};
    }
    const Slice slice = balanced_slice(whole_vectors(), count - (few > 0 ? 1 : 0), index);
    const int64_t lane = slice.begin * kLanes;
    return {static_cast<int>(slice.size()), lane, queries.begin + lane,
            std::min(slice.size() * kLanes, queries.size() - lane), false};
  }

 private:
  int64_t whole_vectors() const { return few > 0 ? vectors - 1 : vectors; }
};

/// rows[l, i] = q[n + l, i] m[n + l, i], zero behind the last query. `ld` >= D.
inline void GatherQueries(const Head& head,
                          const Panel& panel,
                          float* HWY_RESTRICT rows,
                          int64_t ld) {
  const Inputs& in = head.in;
  const int64_t D = in.sizes.D;
  for (int64_t l = 0; l < panel.width(); ++l) {
    float* row = rows + l * ld;
    if (l >= panel.queries) {
      std::fill_n(row, ld, 0.0f);
      continue;
    }
    const float* q = in.q.row(head.b, head.h, panel.n + l);
    if (in.metric) {
      MultiplyRow(q, in.q.stride_d, in.metric.row(head.b, head.h, panel.n + l), in.metric.stride_d,
                  D, row);
    } else {
      ScaleRow(q, in.q.stride_d, D, 1.0f, row);
    }
    std::fill_n(row + D, ld - D, 0.0f);
  }
}

/// How many rows of a key block each column of a panel sees. Rows [0, full) are seen by all its
/// queries, rows [full, end) by some (the causal diagonal), the others by none.
struct Sight {
  int64_t full[kMaxColumns];
  int64_t end[kMaxColumns];

  Sight(const Head& head, const Panel& panel, int64_t key_begin, int64_t key_rows) {
    for (int c = 0; c < panel.columns; ++c) {
      const int64_t first = panel.n + c * kLanes;
      full[c] = std::clamp<int64_t>(head.visible(first) - key_begin, 0, key_rows);
      end[c] = std::clamp<int64_t>(head.visible(first + kLanes - 1) - key_begin, 0, key_rows);
    }
  }
  int64_t rows(const Panel& panel) const { return end[panel.columns - 1]; }
};

/// s[j, lane] = sum_i k[j, i] qt[i, lane] for the cells in sight: column c has rows [0, end[c]).
template <int C, int kFrom = 0>
HWY_INLINE void KeyProduct(Scalars k,
                           const float* HWY_RESTRICT qt,
                           int64_t depth,
                           const int64_t* end,
                           float* HWY_RESTRICT s,
                           int64_t ld) {
  int64_t depths[C];
  for (int c = 0; c < C; ++c) depths[c] = depth;
  const int64_t begin = kFrom == 0 ? 0 : end[kFrom - 1];
  constexpr int kColumns = C - kFrom;
  Product<kTileRows[kColumns - 1], kColumns, Into::kEmpty>(
      end[kFrom] - begin, k.from_row(begin), qt + kFrom * kLanes, C * kLanes, depths, nullptr,
      s + begin * ld + kFrom * kLanes, ld);
  if constexpr (kFrom + 1 < C) {
    if (end[kFrom] < end[C - 1]) KeyProduct<C, kFrom + 1>(k, qt, depth, end, s, ld);
  }
}

/// Sets s to -inf behind the causal diagonal.
inline void HideFuture(const Head& head,
                       const Panel& panel,
                       const Sight& sight,
                       int64_t key_begin,
                       float* s,
                       int64_t ld) {
  const Tag tag;
  const Vec lanes = hn::Iota(tag, 0);
  for (int c = 0; c < panel.columns; ++c) {
    // Lane l of this column sees key j when j < n + l + 1 + M - N, that is when
    // l > j - (n + 1 + M - N).
    const int64_t diagonal =
        panel.n + c * kLanes + 1 + head.in.sizes.M - head.in.sizes.N - key_begin;
    for (int64_t j = sight.full[c]; j < sight.end[c]; ++j) {
      float* cell = s + j * ld + c * kLanes;
      const auto seen = hn::Gt(lanes, hn::Set(tag, static_cast<float>(j - diagonal)));
      hn::StoreU(hn::IfThenElse(seen, hn::LoadU(tag, cell), hn::Set(tag, kHidden)), tag, cell);
    }
  }
}

/// lines[l, j] = the masks of query n + l and key key_begin + j as one number to add: -inf hides.
inline void GatherMasks(const Head& head,
                        const Panel& panel,
                        int64_t key_begin,
                        int64_t rows,
                        float* HWY_RESTRICT lines,
                        int64_t ld) {
  const Inputs& in = head.in;
  const Tag tag;
  const hn::Rebind<uint8_t, Tag> byte_tag;
  const hn::RebindToSigned<Tag> int_tag;
  for (int64_t l = 0; l < panel.width(); ++l) {
    float* line = lines + l * ld;
    std::fill_n(line, ld, 0.0f);
    if (l >= panel.queries) continue;
    if (in.mask_add) {
      const View<const float>& mask = in.mask_add;
      ScaleRow(mask.row(head.b, head.h, panel.n + l) + key_begin * mask.stride_d, mask.stride_d,
               rows, 1.0f, line);
    }
    if (in.mask_keep) {
      const View<const bool>& mask = in.mask_keep;
      const bool* keep = mask.row(head.b, head.h, panel.n + l) + key_begin * mask.stride_d;
      int64_t j = 0;
      if (mask.stride_d == 1) {
        for (; j + kLanes <= rows; j += kLanes) {
          const auto bytes = hn::LoadU(byte_tag, reinterpret_cast<const uint8_t*>(keep + j));
          const auto hide = hn::Eq(hn::PromoteTo(int_tag, bytes), hn::Zero(int_tag));
          const Vec masked = hn::IfThenElse(hn::RebindMask(tag, hide), hn::Set(tag, kHidden),
                                            hn::LoadU(tag, line + j));
          hn::StoreU(masked, tag, line + j);
        }
      }
      for (; j < rows; ++j) {
        if (!keep[j * mask.stride_d]) line[j] = kHidden;
      }
    }
  }
}

/// Adds the masks to the scores, which are in units of log2, and hides exactly: -inf whatever the
/// score was. `lines` and `tile` hold panel width * round_up(rows, 4) floats each.
inline void ApplyMasks(const Head& head,
                       const Panel& panel,
                       int64_t key_begin,
                       int64_t rows,
                       float* HWY_RESTRICT lines,
                       float* HWY_RESTRICT tile,
                       float* s,
                       int64_t ld) {
  const View<const float>& mask = head.in.mask_add;
  const int64_t width = panel.width();
  const bool in_place =
      mask && mask.stride_d == 1 && !head.in.mask_keep && panel.queries == width && rows % 4 == 0;
  if (in_place) {
    const float* first = mask.row(head.b, head.h, panel.n) + key_begin;
    Transpose(first, mask.stride_n, width, rows, 1.0f, tile, width);
    // Lines are short pieces of rows far apart, which the CPU does not foresee: ask for the next
    // block.
    for (int64_t l = 0; l < width; ++l) {
      const float* next = first + l * mask.stride_n + rows;
      for (int64_t j = 0; j < rows; j += 16) hwy::Prefetch(next + j);
    }
  } else {
    const int64_t ld_lines = round_up(rows, 4);
    GatherMasks(head, panel, key_begin, rows, lines, ld_lines);
    Transpose(lines, ld_lines, width, ld_lines, 1.0f, tile, width);
  }
  const Tag tag;
  const Vec hidden = hn::Set(tag, kHidden), log2_e = hn::Set(tag, static_cast<float>(kLog2E));
  // The lowest float is a common "almost -inf": it must stay finite in units of log2.
  const Vec lowest = hn::Set(tag, static_cast<float>(kLowest / kLog2E));
  for (int64_t j = 0; j < rows; ++j) {
    for (int64_t l = 0; l < width; l += kLanes) {
      const Vec bias = hn::LoadU(tag, tile + j * width + l);
      const Vec sum = hn::MulAdd(ClampBelow(bias, lowest), log2_e, hn::LoadU(tag, s + j * ld + l));
      hn::StoreU(hn::IfThenElse(hn::Eq(bias, hidden), hidden, sum), tag, s + j * ld + l);
    }
  }
}

/// z[j, lane] = 1 / (1 - p) where the probability is kept, else 0; key_begin is a multiple of 4.
/// `z` holds round_up(rows, 4) rows of `ld` floats.
inline void DropoutFactors(const Dropout& dropout,
                           const Head& head,
                           const Panel& panel,
                           int64_t key_begin,
                           int64_t rows,
                           float* z,
                           int64_t ld) {
  const Tag tag;
  const hn::RebindToUnsigned<Tag> word_tag;
  // Unsigned comparison through the signed one: flip the top bit of both sides.
  const hn::RebindToSigned<Tag> int_tag;
  const auto top = hn::Set(word_tag, 0x80000000u);
  const auto threshold = hn::BitCast(int_tag, hn::Xor(hn::Set(word_tag, dropout.threshold), top));
  const Vec keep = hn::Set(tag, static_cast<float>(dropout.keep_scale));
  for (int c = 0; c < panel.columns; ++c) {
    for (int64_t j = 0; j < rows; j += 4) {
      hn::Vec<decltype(word_tag)> words[4];
      PhiloxWords(dropout, head.index(), panel.n + c * kLanes, key_begin + j, words);
      for (int w = 0; w < 4; ++w) {
        const auto dropped = hn::Lt(hn::BitCast(int_tag, hn::Xor(words[w], top)), threshold);
        hn::StoreU(hn::IfThenZeroElse(hn::RebindMask(tag, dropped), keep), tag,
                   z + (j + w) * ld + c * kLanes);
      }
    }
  }
}

// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace elliptical::kernels
HWY_AFTER_NAMESPACE();

#endif
