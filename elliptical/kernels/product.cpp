// SPDX-License-Identifier: MIT
#include "elliptical/kernels/product.h"

#include <algorithm>

#include "elliptical/kernels/simd_impl.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "elliptical/kernels/product.cpp"
#include "hwy/foreach_target.h"
// After foreach_target, which re-includes this file:
#include "elliptical/kernels/arena.h"
#include "elliptical/kernels/product-inl.h"
#include "elliptical/kernels/row_tasks-inl.h"
#include "elliptical/kernels/rows-inl.h"

HWY_BEFORE_NAMESPACE();
namespace elliptical::kernels {
namespace HWY_NAMESPACE {
namespace {

/// One panel: `columns` columns of b, zeros behind them.
void PackPanel(int64_t K, int64_t columns, ConstMatrix b, float* panel) {
  if (b.stride_row == 1 && columns == kPanel && K % 4 == 0) {
    Transpose(b.data, b.stride_column, kPanel, K, 1.0f, panel, kPanel);
    return;
  }
  for (int64_t k = 0; k < K; ++k) {
    const float* row = b.data + k * b.stride_row;
    float* to = panel + k * kPanel;
    for (int64_t n = 0; n < columns; ++n) to[n] = row[n * b.stride_column];
    std::fill(to + columns, to + kPanel, 0.0f);
  }
}

void Pack(int64_t K, int64_t N, ConstMatrix b, float* packed, const ParallelFor& parallel_for) {
  parallel_for((N + kPanel - 1) / kPanel, [&](int64_t first, int64_t last) {
    for (int64_t n = first * kPanel; n < std::min(N, last * kPanel); n += kPanel) {
      PackPanel(K, std::min(kPanel, N - n),
                {b.data + n * b.stride_column, b.stride_row, b.stride_column}, packed + n * K);
    }
  });
}

void MultiplyRows(const RowProduct& p, const ParallelFor& parallel_for) {
  ForRowBlocks(p.rows, 0, parallel_for, [&](int64_t begin, int64_t rows, float*) {
    MultiplyBlock(rows, p.K, p.N, p.a + begin * p.K, p.packed, p.bias, p.out + begin * p.N);
  });
}

/// Products of so many rows are summed by themselves: short sums keep digits, and the rows are in
/// the cache for all tiles of a block.
constexpr int64_t kDepth = 128;

/// A block of a gradient: rows [i, i + rows), columns [j, j + columns).
struct GradientBlock {
  int64_t i, rows, j, columns;
};

void SumBlock(const GradientProduct& p, GradientBlock block, float* buffer) {
  for (int64_t i = 0; i < block.rows && !p.adds; ++i) {
    std::fill_n(p.out + (block.i + i) * p.J + block.j, block.columns, 0.0f);
  }
  for (int64_t t = 0; t < p.T; t += kDepth) {
    const int64_t depth = std::min(kDepth, p.T - t);
    const Scalars a{p.a + t * p.I + block.i, 1, p.I};
    for (int64_t j = block.j; j < block.j + block.columns; j += kPanel) {
      const int64_t columns = std::min(kPanel, block.j + block.columns - j);
      const float* b = p.b + t * p.J + j;
      int64_t ldb = p.J;
      if (columns % kLanes != 0) {  // whole vectors would reach behind the rows
        for (int64_t k = 0; k < depth; ++k) {
          std::copy_n(b + k * p.J, columns, buffer + k * kPanel);
          std::fill(buffer + k * kPanel + columns, buffer + (k + 1) * kPanel, 0.0f);
        }
        b = buffer;
        ldb = kPanel;
      }
      MultiplyPanel<Into::kSum>(block.rows, a, depth, b, ldb, columns, nullptr,
                                p.out + block.i * p.J + j, p.J);
    }
  }
}

void SumOuterProducts(const GradientProduct& p, const ParallelFor& parallel_for) {
  constexpr int64_t kRows = 2 * kBlockRows, kColumns = 192;
  const int64_t across = (p.J + kColumns - 1) / kColumns;
  share_tasks((p.I + kRows - 1) / kRows * across, parallel_for, [&](TaskQueue& queue) {
    float* buffer;
    const Arena arena({{&buffer, kDepth * kPanel}});
    for (int64_t task = queue.take(); task >= 0; task = queue.take()) {
      const int64_t i = task / across * kRows, j = task % across * kColumns;
      SumBlock(p, {i, std::min(kRows, p.I - i), j, std::min(kColumns, p.J - j)}, buffer);
    }
  });
}

void SumColumns(Rows size, const float* x, float* sums, const ParallelFor& parallel_for) {
  const RowTasks tasks(size);
  float* partial;
  const Arena arena({{&partial, tasks.count * size.C}});
  parallel_for(tasks.count, [&](int64_t first, int64_t last) {
    for (int64_t task = first; task < last; ++task) {
      float* sum = partial + task * size.C;
      std::fill_n(sum, size.C, 0.0f);
      for (int64_t r = tasks.begin(task); r < tasks.end(task); ++r) {
        ForVectors(size.C, [&](int64_t, auto load, auto store)
                               HWY_ATTR { store(hn::Add(load(sum), load(x + r * size.C)), sum); });
      }
    }
  });
  SumTasks(partial, tasks.count, size.C, size.C, sums, parallel_for);
}

}  // namespace
// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace HWY_NAMESPACE
}  // namespace elliptical::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace elliptical::kernels {

HWY_EXPORT(Pack);
HWY_EXPORT(MultiplyRows);
HWY_EXPORT(SumOuterProducts);
HWY_EXPORT(SumColumns);

void pack(int64_t K, int64_t N, ConstMatrix b, float* packed, const ParallelFor& parallel_for) {
  HWY_DISPATCH_TABLE(Pack)[simd_chosen().GetIndex()](K, N, b, packed, parallel_for);
}

void row_product(const RowProduct& product, const ParallelFor& parallel_for) {
  HWY_DISPATCH_TABLE(MultiplyRows)[simd_chosen().GetIndex()](product, parallel_for);
}

void gradient_product(const GradientProduct& product, const ParallelFor& parallel_for) {
  HWY_DISPATCH_TABLE(SumOuterProducts)[simd_chosen().GetIndex()](product, parallel_for);
}

void column_sums(Rows size, const float* x, float* sums, const ParallelFor& parallel_for) {
  HWY_DISPATCH_TABLE(SumColumns)[simd_chosen().GetIndex()](size, x, sums, parallel_for);
}

}  // namespace elliptical::kernels
#endif  // HWY_ONCE
