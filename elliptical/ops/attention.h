// SPDX-License-Identifier: MIT
//
// Elliptical attention on ATen tensors (NeurIPS 2024, eq. 12), differentiable:
//
//   out[n] = sum_j softmax_j(scale * sum_i q[n,i] m[n,i] k[j,i]) v[j]
//
// Shapes: q (B, H, N, D), k (B, Hk, M, D), v (B, Hk, M, Dv), H a multiple of Hk; out (B, H, N, Dv).
// The same op is `torch.ops.elliptical.attention`. Every call takes one of three paths, and
// `explain` says which and why: "fused" (our CPU kernel), "sdpa" (torch's own fused attention on
// q * m, for other devices) and "composite" (plain ATen ops: any dtype, any device, the reference
// of the tests).
#pragma once

#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>

#include <iosfwd>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

namespace elliptical::ops {

struct AttentionOptions {
  /// Query n sees keys j <= n + (M - N): aligned at the bottom right, so that a key cache works.
  bool is_causal = false;
  /// Factor of the logits; 1 / sqrt(D) when absent.
  std::optional<double> scale;
  /// Chance of dropping a probability; in [0, 1).
  double dropout_p = 0.0;
  /// Broadcastable to (B, H, N, M): bool (true = attend) or an additive mask of q's dtype.
  std::optional<at::Tensor> attn_mask;
  /// (B) int64: keys from that index on are padding; so are queries when N = M.
  std::optional<at::Tensor> key_lengths;
  /// Where the dropout seed is drawn from; torch's default CPU generator when absent.
  std::optional<at::Generator> generator;
  /// The seed itself instead of one drawn from a generator: the call repeats whatever came before.
  std::optional<int64_t> dropout_seed;
};

/// Attention with an optional metric (B|1, H|1, 1|N, D), non-negative, that scales q
/// coordinate-wise.
///
///     using elliptical::ops::attention;
///     at::Tensor m = elliptical::ops::metric(v, v_prev, {});            // (B, H, 1, D)
///     at::Tensor out = attention(q, k, v, m, {.is_causal = false});     // (B, H, N, Dv)
at::Tensor attention(const at::Tensor& q,
                     const at::Tensor& k,
                     const at::Tensor& v,
                     const std::optional<at::Tensor>& metric = {},
                     const AttentionOptions& options = {});

/// The same, and the logsumexp of the logits, (B, H, N), differentiable too. It is float for half
/// precision inputs, else of q's dtype, and -inf for a query that sees no key.
std::tuple<at::Tensor, at::Tensor> attention_with_lse(const at::Tensor& q,
                                                      const at::Tensor& k,
                                                      const at::Tensor& v,
                                                      const std::optional<at::Tensor>& metric = {},
                                                      const AttentionOptions& options = {});

/// The composite path, whatever `explain` says: O(N * M) memory, twice differentiable.
std::tuple<at::Tensor, at::Tensor> attention_composite(const at::Tensor& q,
                                                       const at::Tensor& k,
                                                       const at::Tensor& v,
                                                       const std::optional<at::Tensor>& metric = {},
                                                       const AttentionOptions& options = {});

/// The sdpa path, whatever `explain` says; no dropout. NaN and Inf in keys that no query sees do
/// not spread; in keys that only some queries see they are up to torch's kernel.
at::Tensor attention_via_sdpa(const at::Tensor& q,
                              const at::Tensor& k,
                              const at::Tensor& v,
                              const std::optional<at::Tensor>& metric = {},
                              const AttentionOptions& options = {});

/// Which path a call takes, and why not the others.
struct Explanation {
  struct Refusal {
    std::string path;
    std::string reason;
  };
  std::string path;  ///< "fused", "sdpa" or "composite"
  std::vector<Refusal> refused;
};

/// "fused" on one line, then "  not sdpa: <reason>" for each other path.
std::ostream& operator<<(std::ostream& stream, const Explanation& explanation);

/// What `attention` (need_lse = false) or `attention_with_lse` would do. Checks the arguments as
/// they do, computes nothing. ELLIPTICAL_ATTENTION=composite in the environment forces that path.
Explanation explain(const at::Tensor& q,
                    const at::Tensor& k,
                    const at::Tensor& v,
                    const std::optional<at::Tensor>& metric = {},
                    const AttentionOptions& options = {},
                    bool need_lse = false);

}  // namespace elliptical::ops
