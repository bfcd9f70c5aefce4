// SPDX-License-Identifier: MIT
//
// What forward and backward share: a *panel* is up to kMaxColumns vectors of neighbouring queries
// of one head, kept transposed (queries in the lanes). This file packs panels, computes their
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
#include "elliptical/kernels/tile-inl.h"
#include "elliptical/kernels/visible.h"

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
};

/// Up to kMaxColumns vectors of queries, the first being query `n`; `lane` is its offset in the
/// query block.
struct Panel {
  int columns;
  int64_t lane;
  int64_t n;
  int64_t queries;  ///< real ones; the lanes behind them are zero queries

  int64_t width() const { return columns * kLanes; }
};

/// The panels of a query block, as equal as possible (13 vectors are 4+3+3+3, not 4+4+4+1).
struct Panels {
  Slice queries;
  int64_t vectors, count;

  explicit Panels(Slice block)
      : queries(block),
        vectors(ceil_div(block.size(), kLanes)),
        count(ceil_div(vectors, kMaxColumns)) {}
  int64_t width() const { return vectors * kLanes; }
  Panel operator[](int64_t index) const {
    const Slice slice = balanced_slice(vectors, count, index);
    const int64_t lane = slice.begin * kLanes;
    return {static_cast<int>(slice.size()), lane, queries.begin + lane,
            std::min(slice.size() * kLanes, queries.size() - lane)};
  }
};

/// Calls body.template operator()<C>() for the panel's number of columns.
template <class Body>
HWY_INLINE void ForColumns(int columns, Body&& body) {
  switch (columns) {
    case 1:
      return body.template operator()<1>();
    case 2:
      return body.template operator()<2>();
    case 3:
      return body.template operator()<3>();
    default:
      if constexpr (kMaxColumns == 4) return body.template operator()<4>();
  }
}

// ---- Packing ----

/// to[c, r] = from[r, c] for 4 x 4 blocks; both are read and written up to the next multiple of 4.
inline void Transpose(const float* HWY_RESTRICT from,
                      int64_t ld_from,
                      int64_t rows,
                      int64_t columns,
                      float* HWY_RESTRICT to,
                      int64_t ld_to) {
#if HWY_TARGET == HWY_SCALAR
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t c = 0; c < columns; ++c) to[c * ld_to + r] = from[r * ld_from + c];
  }
#else
  const hn::FixedTag<float, 4> tag;
  const hn::RepartitionToWide<decltype(tag)> wide;
  for (int64_t r = 0; r < rows; r += 4) {
    for (int64_t c = 0; c < columns; c += 4) {
      const float* block = from + r * ld_from + c;
      const auto r0 = hn::LoadU(tag, block), r1 = hn::LoadU(tag, block + ld_from);
      const auto r2 = hn::LoadU(tag, block + 2 * ld_from), r3 = hn::LoadU(tag, block + 3 * ld_from);
      const auto low01 = hn::BitCast(wide, hn::InterleaveLower(tag, r0, r1));
      const auto low23 = hn::BitCast(wide, hn::InterleaveLower(tag, r2, r3));
      const auto high01 = hn::BitCast(wide, hn::InterleaveUpper(tag, r0, r1));
      const auto high23 = hn::BitCast(wide, hn::InterleaveUpper(tag, r2, r3));
      float* out = to + c * ld_to + r;
      hn::StoreU(hn::BitCast(tag, hn::InterleaveLower(wide, low01, low23)), tag, out);
      hn::StoreU(hn::BitCast(tag, hn::InterleaveUpper(wide, low01, low23)), tag, out + ld_to);
      hn::StoreU(hn::BitCast(tag, hn::InterleaveLower(wide, high01, high23)), tag, out + 2 * ld_to);
      hn::StoreU(hn::BitCast(tag, hn::InterleaveUpper(wide, high01, high23)), tag, out + 3 * ld_to);
    }
  }
#endif
}

/// to[i] = from[i * stride] * factor
inline void ScaleRow(const float* HWY_RESTRICT from,
                     int64_t stride,
                     int64_t size,
                     float factor,
                     float* HWY_RESTRICT to) {
  if (stride == 1) {
    for (int64_t i = 0; i < size; ++i) to[i] = from[i] * factor;
  } else {
    for (int64_t i = 0; i < size; ++i) to[i] = from[i * stride] * factor;
  }
}

/// rows[l, i] = q[n + l, i] m[n + l, i], zero behind the last query. `ld` >= D.
inline void PackQueries(const Head& head,
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
    ScaleRow(in.q.row(head.b, head.h, panel.n + l), in.q.stride_d, D, 1.0f, row);
    if (in.metric) {
      const float* m = in.metric.row(head.b, head.h, panel.n + l);
      if (in.metric.stride_d == 1) {
        for (int64_t i = 0; i < D; ++i) row[i] *= m[i];
      } else {
        for (int64_t i = 0; i < D; ++i) row[i] *= m[i * in.metric.stride_d];
      }
    }
    std::fill_n(row + D, ld - D, 0.0f);
  }
}

/// values *= factor
inline void ScaleInPlace(float* HWY_RESTRICT values, int64_t size, float factor) {
  for (int64_t i = 0; i < size; ++i) values[i] *= factor;
}

// ---- Keys and values ----

/// Rows [begin, begin + rows) of K or V: in place where channels are neighbours in memory, else a
/// copy. When a row holds a NaN or Inf and may be hidden from some query, 0 * NaN must not reach
/// that query: such blocks are copied with those entries set to 0, and `Restore` adds them for the
/// queries that do see them.
class KeyRows {
 public:
  /// `copy` holds block_rows * width floats.
  KeyRows(const float* row0,
          int64_t stride_row,
          int64_t stride_d,
          int64_t rows,
          int64_t width,
          bool may_be_hidden,
          float* copy)
      : source_(row0), source_row_(stride_row), source_d_(stride_d), rows_(rows), width_(width) {
    data_ = {row0, stride_row, 1};
    finite_ = !may_be_hidden || AllFinite();
    if (stride_d == 1 && finite_) return;
    for (int64_t j = 0; j < rows; ++j) {
      for (int64_t i = 0; i < width; ++i) {
        const float value = Source(j, i);
        copy[j * width + i] = finite_ || std::isfinite(value) ? value : 0.0f;
      }
    }
    data_ = {copy, width, 1};
  }

  Scalars by_row() const { return data_; }                                  ///< element (j, i)
  Scalars by_channel() const { return {data_.data, 1, data_.stride_row}; }  ///< element (i, j)

  /// out[i, lane] += w[j, lane] * source[j, i] for the entries that were set to 0, where w != 0.
  void Restore(const float* w,
               int64_t ldw,
               const int64_t* depth,
               int columns,
               float* out,
               int64_t ldo) const {
    if (finite_) return;
    for (int64_t j = 0; j < rows_; ++j) {
      for (int64_t i = 0; i < width_; ++i) {
        const float value = Source(j, i);
        if (std::isfinite(value)) continue;
        for (int64_t lane = 0; lane < columns * kLanes; ++lane) {
          const float weight = j < depth[lane / kLanes] ? w[j * ldw + lane] : 0.0f;
          if (weight != 0.0f) out[i * ldo + lane] += weight * value;
        }
      }
    }
  }

 private:
  float Source(int64_t j, int64_t i) const { return source_[j * source_row_ + i * source_d_]; }

  bool AllFinite() const {
    // x * 0 is 0 for a finite x and NaN otherwise.
    float poison = 0.0f;
    for (int64_t j = 0; j < rows_; ++j) {
      const float* row = source_ + j * source_row_;
      if (source_d_ == 1) {
        const Tag tag;
        Vec sum = hn::Zero(tag);
        int64_t i = 0;
        for (; i + kLanes <= width_; i += kLanes)
          sum = hn::MulAdd(hn::LoadU(tag, row + i), hn::Zero(tag), sum);
        for (; i < width_; ++i) poison += row[i] * 0.0f;
        poison += hn::GetLane(hn::SumOfLanes(tag, sum));
      } else {
        for (int64_t i = 0; i < width_; ++i) poison += row[i * source_d_] * 0.0f;
      }
    }
    return poison == 0.0f;
  }

  const float* source_;
  int64_t source_row_, source_d_, rows_, width_;
  Scalars data_{};
  bool finite_ = true;
};

// ---- Scores ----

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
  Product<kTileRows[kColumns - 1], kColumns, Init::kZero>(
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
    // Lane l of this column sees key j when j < n + l + 1 + M - N, that is when l > j - (n + 1 + M
    // - N).
    const int64_t diagonal =
        panel.n + c * kLanes + 1 + head.in.sizes.M - head.in.sizes.N - key_begin;
    for (int64_t j = sight.full[c]; j < sight.end[c]; ++j) {
      float* cell = s + j * ld + c * kLanes;
      const auto seen = hn::Gt(lanes, hn::Set(tag, static_cast<float>(j - diagonal)));
      hn::StoreU(hn::IfThenElse(seen, hn::LoadU(tag, cell), hn::Set(tag, kHidden)), tag, cell);
    }
  }
}

/// Adds the masks, in units of log2: s += mask * log2(e), and exactly -inf where a mask hides.
/// `lines` holds width * round_up(rows, 4) floats, `tile` round_up(rows, 4) * width.
inline void ApplyMasks(const Head& head,
                       const Panel& panel,
                       int64_t key_begin,
                       int64_t rows,
                       float* HWY_RESTRICT lines,
                       float* HWY_RESTRICT tile,
                       float* s,
                       int64_t ld) {
  const Inputs& in = head.in;
  const int64_t ld_lines = round_up(rows, 4);
  for (int64_t l = 0; l < panel.width(); ++l) {
    float* line = lines + l * ld_lines;
    std::fill_n(line, ld_lines, 0.0f);
    if (l >= panel.queries) continue;
    if (in.mask_add) {
      const float* mask =
          in.mask_add.row(head.b, head.h, panel.n + l) + key_begin * in.mask_add.stride_d;
      ScaleRow(mask, in.mask_add.stride_d, rows, static_cast<float>(kLog2E), line);
      // The lowest float is a common "almost -inf" and must not become -inf in other units.
      for (int64_t j = 0; j < rows; ++j) {
        if (line[j] < kLowest && mask[j * in.mask_add.stride_d] != kHidden) line[j] = kLowest;
      }
    }
    if (in.mask_keep) {
      const bool* keep =
          in.mask_keep.row(head.b, head.h, panel.n + l) + key_begin * in.mask_keep.stride_d;
      for (int64_t j = 0; j < rows; ++j) {
        if (!keep[j * in.mask_keep.stride_d]) line[j] = kHidden;
      }
    }
  }
  const int64_t width = panel.width();
  Transpose(lines, ld_lines, width, ld_lines, tile, width);
  const Tag tag;
  const Vec hidden = hn::Set(tag, kHidden);
  for (int64_t j = 0; j < rows; ++j) {
    for (int64_t l = 0; l < width; l += kLanes) {
      const Vec mask = hn::LoadU(tag, tile + j * width + l);
      const Vec sum = hn::Add(hn::LoadU(tag, s + j * ld + l), mask);
      hn::StoreU(hn::IfThenElse(hn::Eq(mask, hidden), hidden, sum), tag, s + j * ld + l);
    }
  }
}

// ---- Dropout ----

/// Four vectors of Philox words, for keys j .. j+3 (j a multiple of 4) of queries n .. n + lanes
/// - 1.
HWY_INLINE void PhiloxWords(const Dropout& dropout,
                            int64_t head_index,
                            int64_t n,
                            int64_t j,
                            hn::Vec<hn::RebindToUnsigned<Tag>> (&words)[4]) {
  const hn::RebindToUnsigned<Tag> tag;
#if HWY_TARGET == HWY_SCALAR
  const PhiloxCounter scalars = dropout.words(head_index, n, j);
  for (int w = 0; w < 4; ++w) words[w] = hn::Set(tag, scalars[static_cast<size_t>(w)]);
#else
  const hn::RepartitionToWide<decltype(tag)> wide;
  using U = hn::Vec<decltype(tag)>;
  const auto multiply = [&](U x, uint32_t factor, U& high) HWY_ATTR {
    const U f = hn::Set(tag, factor);
    const auto even = hn::MulEven(x, f);
    const auto odd = hn::MulEven(hn::BitCast(tag, hn::ShiftRight<32>(hn::BitCast(wide, x))), f);
    high = hn::OddEven(hn::BitCast(tag, odd), hn::BitCast(tag, hn::ShiftRight<32>(even)));
    return hn::OddEven(hn::BitCast(tag, hn::ShiftLeft<32>(odd)), hn::BitCast(tag, even));
  };
  U x0 = hn::Iota(tag, static_cast<uint32_t>(n));
  U x1 = hn::Set(tag, static_cast<uint32_t>(j / 4));
  U x2 = hn::Set(tag, static_cast<uint32_t>(head_index));
  U x3 = hn::Set(tag, static_cast<uint32_t>(static_cast<uint64_t>(head_index) >> 32));
  PhiloxKey key = dropout.key;
  for (int round = 0; round < kPhiloxRounds; ++round) {
    U high0, high1;
    const U low0 = multiply(x0, kPhiloxMultiplier0, high0);
    const U low1 = multiply(x2, kPhiloxMultiplier1, high1);
    x0 = hn::Xor(hn::Xor(high1, x1), hn::Set(tag, key[0]));
    x1 = low1;
    x2 = hn::Xor(hn::Xor(high0, x3), hn::Set(tag, key[1]));
    x3 = low0;
    key[0] += kPhiloxWeyl0;
    key[1] += kPhiloxWeyl1;
  }
  words[0] = x0;
  words[1] = x1;
  words[2] = x2;
  words[3] = x3;
#endif
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
