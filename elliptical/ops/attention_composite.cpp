// SPDX-License-Identifier: MIT
//
// Attention written with ATen ops: the version to read, the one tests compare with, and the path of
// every dtype and device that has no kernel of ours. ATen differentiates it, any number of times.
//
// A masked product p @ v leaks: 0 * NaN = NaN. So with any mask, non-finite entries of q * m, k and
// v are replaced by zeros before each product and NaN is added back, afterwards, exactly where a
// query sees one. Gradients then stay clean too, because no product ever meets a non-finite factor
// that is hidden.
#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <ATen/autocast_mode.h>

#include <cmath>
#include <limits>

#include "elliptical/base/infinity.h"
#include "elliptical/ops/attention_impl.h"
#include "elliptical/ops/masks_impl.h"

namespace elliptical::ops {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
/// Prepends dimensions of size 1 up to four.
at::Tensor as_rank4(at::Tensor mask) {
  while (mask.dim() < 4) mask = mask.unsqueeze(0);
  return mask;
}

/// (B|1, H|1, N, M) true where query n may see key j; undefined when all see all.
at::Tensor visible_pairs(const AttentionArgs& args) {
  const c10::SymInt N = args.q.sym_size(2), M = args.k.sym_size(2);
  at::Tensor visible;
  const auto restrict_to = [&](const at::Tensor& pairs) {
    visible = visible.defined() ? visible.logical_and(pairs) : pairs;
  };
  if (args.is_causal) {
    const at::TensorOptions index = args.q.options().dtype(at::kLong);
    const at::Tensor query = at::arange(c10::Scalar(N), index).unsqueeze(1);
    restrict_to(as_rank4(at::arange(c10::Scalar(M), index) <= query + c10::Scalar(M - N)));
  }
  if (args.key_lengths) {
    const at::Tensor valid = valid_tokens(*args.key_lengths, M, "attention: key_lengths", "M");
    restrict_to(valid.unsqueeze(1).unsqueeze(1));
    if (N == M) restrict_to(valid.unsqueeze(1).unsqueeze(-1));
  }
  if (args.attn_mask) {
    const at::Tensor mask = as_rank4(*args.attn_mask);
    restrict_to(mask.scalar_type() == at::kBool ? mask : mask.ne(-kInfinity));
  }
  if (!visible.defined() && M == 0) {
    visible = at::empty_symint({1, 1, N, M}, args.q.options().dtype(at::kBool));
  }
  if (visible.defined()) {
    visible = visible.expand_symint({visible.sym_size(0), visible.sym_size(1), N, M});
  }
  return visible;
}

/// (B, Hk, M, D) -> (B, H, M, D): each key head serves H / Hk query heads in a row.
at::Tensor repeat_heads(const at::Tensor& t, const c10::SymInt& H) {
  const c10::SymInt Hk = t.sym_size(1);
  if (Hk == H) return t;
  return t.unsqueeze(2)
      .expand_symint({t.sym_size(0), Hk, H / Hk, t.sym_size(2), t.sym_size(3)})
      .reshape_symint({t.sym_size(0), H, t.sym_size(2), t.sym_size(3)});
}

at::Tensor finite_or_zero(const at::Tensor& t) { return at::where(t.isfinite(), t, 0.0); }

/// NaN where `bad`, else 0: added to a result, it marks it and lets gradients through.
at::Tensor nan_where(const at::Tensor& bad, const at::Tensor& like) {
  return at::where(bad, at::scalar_tensor(kNan, like.options()), 0.0);
}

/// scale * q * m (B, H, N, D). Rows of queries that see nothing are 0, whatever q and m hold there.
at::Tensor scaled_queries(const AttentionArgs& args,
                          const at::Tensor& row_sees,
                          at::ScalarType type) {
  at::Tensor q = args.q.to(type);
  if (row_sees.defined()) q = at::where(row_sees, q, 0.0);
  if (args.metric) {
    const at::Tensor m = args.metric->to(type);
    q = q * (row_sees.defined() ? at::where(row_sees, m, 1.0) : m);
  }
  return q * args.scale_or_default();
}

/// The logits s (B, H, N, M), -inf where hidden.
at::Tensor masked_logits(const at::Tensor& q, const at::Tensor& k, const at::Tensor& visible) {
  if (!visible.defined()) return q.matmul(k.transpose(-2, -1));
  const at::Tensor bad_query = q.isfinite().all(-1, /*keepdim=*/true).logical_not();
  const at::Tensor bad_key = k.isfinite().all(-1).logical_not().unsqueeze(-2);
  const at::Tensor s = finite_or_zero(q).matmul(finite_or_zero(k).transpose(-2, -1)) +
                       nan_where(bad_query.logical_or(bad_key), q);
  return at::where(visible, s, -kInfinity);
}

/// p @ v (B, H, N, Dv) for probabilities that are 0 where hidden.
at::Tensor weighted_values(const at::Tensor& p, const at::Tensor& v, const at::Tensor& visible) {
  if (!visible.defined()) return p.matmul(v);
  const at::Tensor bad_value = v.isfinite().logical_not().to(v.scalar_type());
  const at::Tensor sees_bad = visible.to(v.scalar_type()).matmul(bad_value) > 0;
  return p.matmul(finite_or_zero(v)) + nan_where(sees_bad, v);
}

}  // namespace

AttentionResult attention_composite(const AttentionArgs& args) {
  // Half precision is computed in float; autocast must not undo that.
  const c10::impl::ExcludeDispatchKeyGuard no_autocast(c10::autocast_dispatch_keyset);
  const at::ScalarType dtype = args.q.scalar_type();
  const at::ScalarType type = dtype == at::kDouble ? at::kDouble : at::kFloat;
  const c10::SymInt H = args.q.sym_size(1);

  const at::Tensor visible = visible_pairs(args);
  const at::Tensor row_sees = visible.defined() ? visible.any(-1, /*keepdim=*/true) : at::Tensor();
  const at::Tensor q = scaled_queries(args, row_sees, type);
  const at::Tensor k = repeat_heads(args.k.to(type), H);
  const at::Tensor v = repeat_heads(args.v.to(type), H);

  at::Tensor s = masked_logits(q, k, visible);
  if (args.attn_mask && args.attn_mask->scalar_type() != at::kBool) {
    s = s + at::where(visible, args.attn_mask->to(type), 0.0);
  }

  // Softmax by hand: a row without any visible key must give 0 with gradient 0, not 0 / 0.
  at::Tensor row_max = at::zeros({}, s.options());
  if (s.sym_size(-1) != 0) row_max = s.detach().amax(-1, /*keepdim=*/true);
  row_max = at::where(row_max.ne(-kInfinity), row_max, 0.0);
  at::Tensor e = (s - row_max).exp();
  if (visible.defined()) e = at::where(visible, e, 0.0);  // also in a row that is NaN
  at::Tensor row_sum = e.sum(-1, /*keepdim=*/true);
  if (row_sees.defined()) row_sum = at::where(row_sees, row_sum, 1.0);

  at::Tensor p = e / row_sum;
  if (args.dropout_p > 0.0) {
    const at::Tensor keep = dropout_keep(*args.dropout_seed, s, args.dropout_p);
    p = at::where(keep, p, 0.0) * (1.0 / (1.0 - args.dropout_p));
  }
  at::Tensor out = weighted_values(p, v, visible);
  at::Tensor lse = row_max + row_sum.log();
  if (row_sees.defined()) {
    out = at::where(row_sees, out, 0.0);
    lse = at::where(row_sees, lse, -kInfinity);
  }
  return {out.to(dtype), lse.squeeze(-1)};
}

at::Tensor attention_via_sdpa(const AttentionArgs& args) {
  const c10::SymInt H = args.q.sym_size(1);
  at::Tensor q = args.metric ? args.q * *args.metric : args.q;
  at::Tensor k = repeat_heads(args.k, H);
  at::Tensor v = repeat_heads(args.v, H);
  // SDPA aligns a causal mask at the top left; that is ours only when N = M.
  const bool plain_causal = args.is_causal && !args.key_lengths && !args.attn_mask &&
                            args.q.sym_size(2) == args.k.sym_size(2);
  const at::Tensor visible = plain_causal ? at::Tensor() : visible_pairs(args);
  std::optional<at::Tensor> mask;
  at::Tensor row_sees;
  if (visible.defined()) {
    row_sees = visible.any(-1, /*keepdim=*/true);
    const at::Tensor key_seen = visible.any(-2).unsqueeze(-1);
    q = at::where(row_sees, q, 0.0);
    k = at::where(key_seen, k, 0.0);
    v = at::where(key_seen, v, 0.0);
    mask = visible;
    if (args.attn_mask && args.attn_mask->scalar_type() != at::kBool) {
      mask = at::where(visible, as_rank4(*args.attn_mask), -kInfinity);
    }
  }
  const at::Tensor out = at::scaled_dot_product_attention(q, k, v, mask, /*dropout_p=*/0.0,
                                                          plain_causal, args.scale_or_default());
  return row_sees.defined() ? at::where(row_sees, out, 0.0) : out;
}

}  // namespace elliptical::ops
