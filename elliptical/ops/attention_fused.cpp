// SPDX-License-Identifier: MIT
#include <ATen/Functions.h>
#include <ATen/core/dispatch/Dispatcher.h>

#include "elliptical/kernels/attention.h"
#include "elliptical/ops/attention_fused_impl.h"
#include "elliptical/ops/masks_impl.h"
#include "elliptical/ops/parallel_impl.h"

namespace elliptical::ops {
namespace {

template <class T>
kernels::View<const T> read(const at::Tensor& t) {
  return {t.const_data_ptr<T>(), t.stride(0), t.stride(1), t.stride(2), t.stride(3)};
}

kernels::View<float> write(const at::Tensor& t) {
  return {t.mutable_data_ptr<float>(), t.stride(0), t.stride(1), t.stride(2), t.stride(3)};
}

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

Inputs make_inputs(const at::Tensor& q,
                   const at::Tensor& k,
                   const at::Tensor& v,
                   const OptionalTensor& metric,
                   const OptionalTensor& attn_mask,
                   const OptionalTensor& key_lengths,
                   const OptionalTensor& dropout_seed,
                   bool is_causal,
                   double scale,
                   double dropout_p) {
  Inputs result;
  kernels::AttentionInputs<float>& in = result.in;
  in.sizes = {.B = q.size(0),
              .H = q.size(1),
              .Hk = k.size(1),
              .N = q.size(2),
              .M = k.size(2),
              .D = q.size(3),
              .Dv = v.size(3)};
  in.q = read<float>(q);
  in.k = read<float>(k);
  in.v = read<float>(v);
  if (metric) {
    // N equal rows given as an expanded tensor have a gradient each: to the kernel, stride 0 means
    // one row with one gradient.
    const bool expanded_rows = metric->size(2) > 1 && metric->stride(2) == 0;
    result.metric = expanded_rows ? metric->contiguous() : *metric;
    in.metric = read<float>(result.metric.expand(q.sizes()));
  }
  if (attn_mask) {
    const at::Tensor mask = attn_mask->expand({in.sizes.B, in.sizes.H, in.sizes.N, in.sizes.M});
    if (mask.scalar_type() == at::kBool) {
      in.mask_keep = read<bool>(mask);
    } else {
      in.mask_add = read<float>(mask);
    }
  }
  if (key_lengths) {
    result.key_lengths = key_lengths->contiguous();
    in.key_lengths = result.key_lengths.const_data_ptr<int64_t>();
  }
  in.is_causal = is_causal;
  in.scale = scale;
  in.dropout_p = dropout_p;
  if (dropout_p > 0.0) in.dropout_seed = static_cast<uint64_t>(dropout_seed->item<int64_t>());
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
  const kernels::View<const float> from = read<float>(per_head);
  const kernels::View<float> to = write(sum);
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

FusedForward fused_forward_cpu(const at::Tensor& q,
                               const at::Tensor& k,
                               const at::Tensor& v,
                               const OptionalTensor& metric,
                               const OptionalTensor& attn_mask,
                               const OptionalTensor& key_lengths,
                               const OptionalTensor& dropout_seed,
                               bool is_causal,
                               double scale,
                               double dropout_p) {
  if (key_lengths) check_lengths(*key_lengths, k.size(2), "attention: key_lengths", "M");
  const Inputs inputs = make_inputs(q, k, v, metric, attn_mask, key_lengths, dropout_seed,
                                    is_causal, scale, dropout_p);
  const at::Tensor out = empty_output(q, v);
  const at::Tensor lse = empty_rows(q), row_max = empty_rows(q), row_sum = empty_rows(q);
  kernels::attention_forward(inputs.in,
                             {.o = write(out),
                              .lse = lse.mutable_data_ptr<float>(),
                              .row_max = row_max.mutable_data_ptr<float>(),
                              .row_sum = row_sum.mutable_data_ptr<float>()},
                             torch_parallel_for);
  return {out, lse, row_max, row_sum};
}

FusedForward fused_forward_meta(const at::Tensor& q,
                                const at::Tensor&,
                                const at::Tensor& v,
                                const OptionalTensor&,
                                const OptionalTensor&,
                                const OptionalTensor&,
                                const OptionalTensor&,
                                bool,
                                double,
                                double) {
  return {empty_output(q, v), empty_rows(q), empty_rows(q), empty_rows(q)};
}

FusedBackward fused_backward_cpu(const at::Tensor& d_out,
                                 const OptionalTensor& d_lse,
                                 const at::Tensor& q,
                                 const at::Tensor& k,
                                 const at::Tensor& v,
                                 const OptionalTensor& metric,
                                 const OptionalTensor& attn_mask,
                                 const OptionalTensor& key_lengths,
                                 const OptionalTensor& dropout_seed,
                                 const at::Tensor& out,
                                 const at::Tensor& row_max,
                                 const at::Tensor& row_sum,
                                 bool is_causal,
                                 double scale,
                                 double dropout_p,
                                 bool need_d_metric) {
  const Inputs inputs = make_inputs(q, k, v, metric, attn_mask, key_lengths, dropout_seed,
                                    is_causal, scale, dropout_p);
  const at::Tensor dq = empty_gradient(q), dk = empty_gradient(k), dv = empty_gradient(v);
  const at::Tensor d_lse_rows = d_lse ? d_lse->contiguous() : at::Tensor();
  const at::Tensor max_rows = row_max.contiguous(), sum_rows = row_sum.contiguous();
  at::Tensor d_metric = at::empty({0}, q.options());
  kernels::AttentionGradients<float> grad{.o = read<float>(out),
                                          .row_max = max_rows.const_data_ptr<float>(),
                                          .row_sum = sum_rows.const_data_ptr<float>(),
                                          .d_o = read<float>(d_out),
                                          .dq = write(dq),
                                          .dk = write(dk),
                                          .dv = write(dv)};
  if (d_lse) grad.d_lse = d_lse_rows.const_data_ptr<float>();
  if (need_d_metric) {
    d_metric = at::empty({q.size(0), q.size(1), metric->size(2), q.size(3)}, q.options());
    grad.d_metric = write(d_metric);
    if (inputs.in.metric.stride_n == 0) grad.d_metric.stride_n = 0;
  }
  kernels::attention_backward(inputs.in, grad, torch_parallel_for);
  if (need_d_metric) d_metric = sum_to_metric(d_metric, *metric);
  return {dq, dk, dv, d_metric};
}

FusedBackward fused_backward_meta(const at::Tensor&,
                                  const OptionalTensor&,
                                  const at::Tensor& q,
                                  const at::Tensor& k,
                                  const at::Tensor& v,
                                  const OptionalTensor& metric,
                                  const OptionalTensor&,
                                  const OptionalTensor&,
                                  const OptionalTensor&,
                                  const at::Tensor&,
                                  const at::Tensor&,
                                  const at::Tensor&,
                                  bool,
                                  double,
                                  double,
                                  bool need_d_metric) {
  return {empty_gradient(q), empty_gradient(k), empty_gradient(v),
          need_d_metric ? at::empty_symint(metric->sym_sizes(), q.options())
                        : at::empty({0}, q.options())};
}

FusedForward call_fused_forward(const at::Tensor& q,
                                const at::Tensor& k,
                                const at::Tensor& v,
                                const OptionalTensor& metric,
                                const OptionalTensor& attn_mask,
                                const OptionalTensor& key_lengths,
                                const OptionalTensor& dropout_seed,
                                bool is_causal,
                                double scale,
                                double dropout_p) {
  static const auto op = c10::Dispatcher::singleton()
                             .findSchemaOrThrow("elliptical::_attention_forward", "")
                             .typed<FusedForwardSignature>();
  return op.call(q, k, v, metric, attn_mask, key_lengths, dropout_seed, is_causal, scale,
                 dropout_p);
}

FusedBackward call_fused_backward(const at::Tensor& d_out,
                                  const OptionalTensor& d_lse,
                                  const at::Tensor& q,
                                  const at::Tensor& k,
                                  const at::Tensor& v,
                                  const OptionalTensor& metric,
                                  const OptionalTensor& attn_mask,
                                  const OptionalTensor& key_lengths,
                                  const OptionalTensor& dropout_seed,
                                  const at::Tensor& out,
                                  const at::Tensor& row_max,
                                  const at::Tensor& row_sum,
                                  bool is_causal,
                                  double scale,
                                  double dropout_p,
                                  bool need_d_metric) {
  static const auto op = c10::Dispatcher::singleton()
                             .findSchemaOrThrow("elliptical::_attention_backward", "")
                             .typed<FusedBackwardSignature>();
  return op.call(d_out, d_lse, q, k, v, metric, attn_mask, key_lengths, dropout_seed, out, row_max,
                 row_sum, is_causal, scale, dropout_p, need_d_metric);
}

}  // namespace elliptical::ops
