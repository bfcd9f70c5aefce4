// SPDX-License-Identifier: MIT
//
// Gradients of attention: the tasks. One task owns the keys of one head and adds to dK and dV while
// it walks over blocks of queries in a fixed order, so nothing depends on the number of threads.
// The mathematics is in attention_gradient-inl.h.
#include "elliptical/kernels/simd_impl.h"  // before Highway

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "elliptical/kernels/attention_backward.cpp"
#include "hwy/foreach_target.h"
// After foreach_target, which re-includes this file:
#include <vector>

#include "elliptical/kernels/attention_gradient-inl.h"

HWY_BEFORE_NAMESPACE();
namespace elliptical::kernels {
namespace HWY_NAMESPACE {
namespace {

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
        metric_shared_(grad.d_metric && grad.d_metric.stride_n == 0),
        arena_({{&partials_, (segments_ - 1) * in.sizes.B * in.sizes.Hk * partial_size_}}) {
    const AttentionSizes& sizes = in.sizes;
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
    float* partial = partials_ + (key_head * (segments_ - 1) + segment - 1) * partial_size_;
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
  const bool metric_shared_;  ///< by all queries: its gradient is a sum over them
  float* partials_;           ///< dK and dV of all segments but the first
  const Arena arena_;
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
