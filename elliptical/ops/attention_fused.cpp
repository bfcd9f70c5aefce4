// SPDX-License-Identifier: MIT
#include <ATen/Functions.h>
#include <ATen/core/dispatch/Dispatcher.h>

#include "elliptical/kernels/attention.h"
#include "elliptical/ops/attention_fused_impl.h"
#include "elliptical/ops/masks_impl.h"
#include "elliptical/ops/parallel_impl.h"
#include "elliptical/ops/tensor_memory_impl.h"

namespace elliptical::ops {
namespace {

/// An uninitialised (B, H, N, D) tensor with rows together. Models split heads from (B, N, H, D)
/// memory; when `like` came from there the result has that order too and merging heads is no copy.
at::Tensor empty_like_layout(const at::Tensor& like,
                             const c10::SymInt& H,
                             const c10::SymInt& N,
                             const c10::SymInt& D) {
  const c10::SymInt B = like.sym_size(0);
  if (like.sym_stride(1) < like.sym_stride(2)) {
    return at::empty_symint({B, N, H, D}, like.options()).transpose(1, 2);
  }
  return at::empty_symint({B, H, N, D}, like.options());
}

at::Tensor empty_output(const at::Tensor& q, const at::Tensor& v) {
  return empty_like_layout(q, q.sym_size(1), q.sym_size(2), v.sym_size(3));
}

at::Tensor empty_gradient(const at::Tensor& input) {
  return empty_like_layout(input, input.sym_size(1), input.sym_size(2), input.sym_size(3));
}

at::Tensor empty_rows(const at::Tensor& q) {
  return at::empty_symint({q.sym_size(0), q.sym_size(1), q.sym_size(2)}, q.options());
}

/// The kernel's inputs, and the tensors that own the memory they point to.
struct Inputs {
  at::Tensor metric, key_lengths;
  kernels::AttentionInputs<float> in;
};

Inputs make_inputs(const ForwardArgs& args) {
  const at::Tensor &q = args.q, &k = args.k, &v = args.v;
  Inputs result;
  kernels::AttentionInputs<float>& in = result.in;
  in.sizes = {.B = q.size(0),
              .H = q.size(1),
              .Hk = k.size(1),
              .N = q.size(2),
              .M = k.size(2),
              .D = q.size(3),
              .Dv = v.size(3)};
  in.q = read_view<float>(q);
  in.k = read_view<float>(k);
  in.v = read_view<float>(v);
  if (args.metric) {
    // N equal rows given as an expanded tensor have a gradient each: to the kernel, stride 0 means
    // one row with one gradient.
    const bool expanded_rows = args.metric->size(2) > 1 && args.metric->stride(2) == 0;
    result.metric = expanded_rows ? args.metric->contiguous() : *args.metric;
    in.metric = read_view<float>(result.metric.expand(q.sizes()));
  }
  if (args.attn_mask) {
    const at::Tensor mask =
        args.attn_mask->expand({in.sizes.B, in.sizes.H, in.sizes.N, in.sizes.M});
    if (mask.scalar_type() == at::kBool) {
      in.mask_keep = read_view<bool>(mask);
    } else {
      in.mask_add = read_view<float>(mask);
    }
  }
  if (args.key_lengths) {
    result.key_lengths = args.key_lengths->contiguous();
    in.key_lengths = result.key_lengths.const_data_ptr<int64_t>();
  }
  in.is_causal = args.is_causal;
  in.scale = args.scale;
  in.dropout_p = args.dropout_p;
  if (args.dropout_p > 0.0)
    in.dropout_seed = static_cast<uint64_t>(args.dropout_seed->item<int64_t>());
  return result;
}

/// Sums (B, H, R, D) over the batch items and heads that `metric` shares. Rows are summed in a
/// fixed order, so the result does not depend on the number of threads.
at::Tensor sum_to_metric(const at::Tensor& per_head, const at::Tensor& metric) {
  if (per_head.sizes() == metric.sizes()) return per_head;
  const at::Tensor sum = at::zeros(metric.sizes(), metric.options());
  const int64_t B = per_head.size(0), H = per_head.size(1), R = per_head.size(2),
                D = per_head.size(3);
  const int64_t step_b = metric.size(0) == 1 ? 0 : 1, step_h = metric.size(1) == 1 ? 0 : 1;
  const kernels::View<const float> from = read_view<float>(per_head);
  const kernels::View<float> to = write_view(sum);
  torch_parallel_for(R, [&](int64_t begin, int64_t end) {
    for (int64_t b = 0; b < B; ++b)
      for (int64_t h = 0; h < H; ++h)
        for (int64_t r = begin; r < end; ++r)
          for (int64_t i = 0; i < D; ++i)
            to.row(b * step_b, h * step_h, r)[i] += from.row(b, h, r)[i];
  });
  return sum;
}

}  // namespace

FusedForward fused_forward_cpu(const ForwardArgs& args) {
  const at::Tensor& q = args.q;
  if (args.key_lengths) {
    check_lengths(*args.key_lengths, args.k.size(2), "attention: key_lengths", "M");
  }
  const Inputs inputs = make_inputs(args);
  const at::Tensor out = empty_output(q, args.v);
  const at::Tensor lse = empty_rows(q), row_max = empty_rows(q), row_sum = empty_rows(q);
  kernels::attention_forward(inputs.in,
                             {.o = write_view(out),
                              .lse = lse.mutable_data_ptr<float>(),
                              .row_max = row_max.mutable_data_ptr<float>(),
                              .row_sum = row_sum.mutable_data_ptr<float>()},
                             torch_parallel_for);
  return {out, lse, row_max, row_sum};
}

FusedForward fused_forward_meta(const ForwardArgs& args) {
  return {empty_output(args.q, args.v), empty_rows(args.q), empty_rows(args.q), empty_rows(args.q)};
}

FusedBackward fused_backward_cpu(const BackwardArgs& args) {
  const at::Tensor dq = empty_gradient(args.q), dk = empty_gradient(args.k),
                   dv = empty_gradient(args.v);
  const at::Tensor d_metric = fused_backward_into(args, dq, dk, dv);
  return {dq, dk, dv, d_metric};
}

at::Tensor fused_backward_into(const BackwardArgs& args,
                               const at::Tensor& dq,
                               const at::Tensor& dk,
                               const at::Tensor& dv) {
  const at::Tensor& q = args.q;
  const Inputs inputs = make_inputs(args.forward());
  const at::Tensor d_lse_rows = args.d_lse ? args.d_lse->contiguous() : at::Tensor();
  const at::Tensor max_rows = args.row_max.contiguous(), sum_rows = args.row_sum.contiguous();
  at::Tensor d_metric = at::empty({0}, q.options());
  kernels::AttentionGradients<float> grad{.o = read_view<float>(args.out),
                                          .row_max = max_rows.const_data_ptr<float>(),
                                          .row_sum = sum_rows.const_data_ptr<float>(),
                                          .d_o = read_view<float>(args.d_out),
                                          .dq = write_view(dq),
                                          .dk = write_view(dk),
                                          .dv = write_view(dv)};
  if (args.d_lse) grad.d_lse = d_lse_rows.const_data_ptr<float>();
  if (args.need_d_metric) {
    d_metric = at::empty({q.size(0), q.size(1), args.metric->size(2), q.size(3)}, q.options());
    grad.d_metric = write_view(d_metric);
    if (inputs.in.metric.stride_n == 0) grad.d_metric.stride_n = 0;
  }
  kernels::attention_backward(inputs.in, grad, torch_parallel_for);
  return args.need_d_metric ? sum_to_metric(d_metric, *args.metric) : d_metric;
}

FusedBackward fused_backward_meta(const BackwardArgs& args) {
  return {empty_gradient(args.q), empty_gradient(args.k), empty_gradient(args.v),
          args.need_d_metric ? at::empty_symint(args.metric->sym_sizes(), args.q.options())
                             : at::empty({0}, args.q.options())};
}

FusedForward call_fused_forward(const ForwardArgs& args) {
  static const auto op = c10::Dispatcher::singleton()
                             .findSchemaOrThrow("elliptical::_attention_forward", "")
                             .typed<FusedForwardSignature>();
  return call_flat(args, [](const auto&... flat) { return op.call(flat...); });
}

FusedBackward call_fused_backward(const BackwardArgs& args) {
  static const auto op = c10::Dispatcher::singleton()
                             .findSchemaOrThrow("elliptical::_attention_backward", "")
                             .typed<FusedBackwardSignature>();
  return call_flat(args, [](const auto&... flat) { return op.call(flat...); });
}

}  // namespace elliptical::ops
