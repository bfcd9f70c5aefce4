// SPDX-License-Identifier: MIT
//
// Every check of the attention op's arguments. Messages have one form:
// `attention: <argument> must <what must hold>, got <what was given>`.
#include <ATen/Functions.h>
#include <c10/util/Exception.h>

#include <cmath>

#include "elliptical/ops/attention_impl.h"
#include "elliptical/ops/shape_text_impl.h"

namespace elliptical::ops {
namespace {

void check_rank(const at::Tensor& tensor, const char* name, const char* shape) {
  TORCH_CHECK_VALUE(tensor.dim() == 4, "attention: ", name, " must be ", shape, ", got ",
                    shape_text(tensor));
}

void check_like_q(const at::Tensor& q, const at::Tensor& tensor, const char* name) {
  TORCH_CHECK_TYPE(tensor.scalar_type() == q.scalar_type(), "attention: ", name,
                   " must have q's dtype ", q.scalar_type(), ", got ", tensor.scalar_type());
  TORCH_CHECK_VALUE(tensor.device() == q.device(), "attention: ", name, " must be on q's device ",
                    q.device(), ", got ", tensor.device());
}

void check_heads(const AttentionArgs& args) {
  const c10::SymInt B = args.q.sym_size(0), H = args.q.sym_size(1), D = args.q.sym_size(3);
  const c10::SymInt Hk = args.k.sym_size(1), M = args.k.sym_size(2);
  TORCH_CHECK_VALUE(args.k.sym_size(0) == B && args.k.sym_size(3) == D,
                    "attention: k must be (B, Hk, M, D) = (", B, ", Hk, M, ", D, "), got ",
                    shape_text(args.k));
  TORCH_CHECK_VALUE(args.v.sym_size(0) == B && args.v.sym_size(1) == Hk && args.v.sym_size(2) == M,
                    "attention: v must be (B, Hk, M, Dv) = (", B, ", ", Hk, ", ", M, ", Dv), got ",
                    shape_text(args.v));
  TORCH_CHECK_VALUE(Hk == 0 ? H == 0 : H % Hk == 0,
                    "attention: q's head count H must be a multiple of k's Hk, got H = ", H,
                    " and Hk = ", Hk);
}

void check_metric(const AttentionArgs& args) {
  const at::Tensor& metric = *args.metric;
  check_like_q(args.q, metric, "metric");
  const c10::SymInt B = args.q.sym_size(0), H = args.q.sym_size(1), N = args.q.sym_size(2),
                    D = args.q.sym_size(3);
  const auto one_or = [&](int64_t dim, const c10::SymInt& size) {
    return metric.sym_size(dim) == 1 || metric.sym_size(dim) == size;
  };
  TORCH_CHECK_VALUE(
      metric.dim() == 4 && one_or(0, B) && one_or(1, H) && one_or(2, N) && metric.sym_size(3) == D,
      "attention: metric must be (B|1, H|1, 1|N, D) = (", B, "|1, ", H, "|1, 1|", N, ", ", D,
      "), got ", shape_text(metric));
}

void check_mask(const AttentionArgs& args) {
  const at::Tensor& mask = *args.attn_mask;
  TORCH_CHECK_TYPE(mask.scalar_type() == at::kBool || mask.scalar_type() == args.q.scalar_type(),
                   "attention: attn_mask must be Bool or have q's dtype ", args.q.scalar_type(),
                   ", got ", mask.scalar_type());
  TORCH_CHECK_VALUE(mask.device() == args.q.device(), "attention: attn_mask must be on q's device ",
                    args.q.device(), ", got ", mask.device());
  const c10::SymInt full[] = {args.q.sym_size(0), args.q.sym_size(1), args.q.sym_size(2),
                              args.k.sym_size(2)};
  bool broadcasts = mask.dim() <= 4;
  for (int64_t dim = 1; broadcasts && dim <= mask.dim(); ++dim) {
    broadcasts = mask.sym_size(-dim) == 1 || mask.sym_size(-dim) == full[4 - dim];
  }
  TORCH_CHECK_VALUE(broadcasts, "attention: attn_mask must broadcast to (B, H, N, M) = (", full[0],
                    ", ", full[1], ", ", full[2], ", ", full[3], "), got ", shape_text(mask));
}

void check_key_lengths(const AttentionArgs& args) {
  const at::Tensor& lengths = *args.key_lengths;
  TORCH_CHECK_TYPE(lengths.scalar_type() == at::kLong,
                   "attention: key_lengths must have dtype Long, got ", lengths.scalar_type());
  TORCH_CHECK_VALUE(lengths.device() == args.q.device(),
                    "attention: key_lengths must be on q's device ", args.q.device(), ", got ",
                    lengths.device());
  TORCH_CHECK_VALUE(lengths.dim() == 1 && lengths.sym_size(0) == args.q.sym_size(0),
                    "attention: key_lengths must be (B) = (", args.q.sym_size(0), "), got ",
                    shape_text(lengths));
}

void check_dropout(const AttentionArgs& args) {
  TORCH_CHECK_VALUE(args.dropout_p >= 0.0 && args.dropout_p < 1.0,
                    "attention: dropout_p must be in [0, 1), got ", args.dropout_p);
  if (args.dropout_p == 0.0) return;
  TORCH_CHECK_VALUE(args.dropout_seed.has_value(),
                    "attention: dropout_seed must be given when dropout_p > 0, got none");
  const at::Tensor& seed = *args.dropout_seed;
  TORCH_CHECK_TYPE(seed.scalar_type() == at::kLong,
                   "attention: dropout_seed must have dtype Long, got ", seed.scalar_type());
  TORCH_CHECK_VALUE(seed.sym_numel() == 1, "attention: dropout_seed must have one element, got ",
                    shape_text(seed));
}

}  // namespace

double AttentionArgs::scale_or_default() const {
  if (scale) return *scale;
  const int64_t D = q.sym_size(3).guard_int(__FILE__, __LINE__);
  return D == 0 ? 1.0 : 1.0 / std::sqrt(static_cast<double>(D));
}

void check_attention(const AttentionArgs& args) {
  check_rank(args.q, "q", "(B, H, N, D)");
  check_rank(args.k, "k", "(B, Hk, M, D)");
  check_rank(args.v, "v", "(B, Hk, M, Dv)");
  TORCH_CHECK_TYPE(at::isFloatingType(args.q.scalar_type()),
                   "attention: q must have a floating point dtype, got ", args.q.scalar_type());
  check_like_q(args.q, args.k, "k");
  check_like_q(args.q, args.v, "v");
  check_heads(args);
  if (args.metric) check_metric(args);
  if (args.attn_mask) check_mask(args);
  if (args.key_lengths) check_key_lengths(args);
  TORCH_CHECK_VALUE(std::isfinite(args.scale.value_or(1.0)),
                    "attention: scale must be finite, got ", args.scale.value_or(1.0));
  check_dropout(args);
}

}  // namespace elliptical::ops
