// SPDX-License-Identifier: MIT
//
// What the kernel density variants share. Their attention is a Nadaraya-Watson regression with the
// Gaussian kernel exp(-s d^2(q, k)) on keys of length 1:
//
//   out_n = f_n sum_j w'_j kernel(q_n, k_j) v_j / sum_j w_j kernel(q_n, k_j)
//
// with weights of keys w (of the marginal density, below) and w' (of the joint one, above), all 1
// in plain KDE. No distance is ever formed: up to a term of the query alone, which cancels, the log
// of a weighted kernel is a scalar product of widened queries and keys. So the fused attention op
// does all the work, in O(N) memory, with its gradients, masks and dropout.
#pragma once

#include <optional>

#include "elliptical/nn/attention/attend.h"

namespace elliptical::nn {

/// s when a recipe gives none: 1 / sqrt(D).
double default_kernel_scale(const AttentionShape& shape);

/// k / max(|k|, 1e-12), (B, H, M, D).
at::Tensor normalized_keys(const at::Tensor& k);

/// Queries and keys with 2 s q^T k = log(w_j kernel(q_n, k_j)) + (a term of n alone).
struct LogKernel {
  at::Tensor q, k;  ///< (B, H, N, E), (B, H, M, E), E >= D
  double scale;     ///< 2 s
};

/// `keys` are normalized. With a metric (B|1, H|1, 1|N, D) the distance is sum_i m_i (q_i - k_i)^2.
/// `log_weights` (B|1, H|1, M) may be undefined.
LogKernel log_kernel(const at::Tensor& q,
                     const at::Tensor& keys,
                     const std::optional<at::Tensor>& metric,
                     const at::Tensor& log_weights,
                     double kernel_scale);

/// Weights of keys, and what a weight of 1 is worth to a query: f above.
struct KeyWeights {
  at::Tensor log_marginal, log_joint;  ///< (B|1, H|1, M), in double where they come from there
  at::Tensor factor;                   ///< (B|1, H|1, N|1)
};

/// The factor that makes both kinds of weights (B|1, H|1, M) add up to 1, over all keys or, with
/// `running`, over those that a query of a causal model sees. `real` (B, 1, M) marks tokens that
/// are no padding; it may be undefined. (B|1, H|1, 1|M)
at::Tensor normalizing_factor(const at::Tensor& marginal,
                              const at::Tensor& joint,
                              const at::Tensor& real,
                              bool running);

struct RegressionOptions {
  double kernel_scale = 1.0;  ///< s
  double dropout = 0.0;       ///< of normalized weights, in training
};

/// (B, H, N, D). Leaves in the trace what `attend` does: the heads as they are given, and the
/// weight of each value as "attention". Rows of it sum to 1 where w = w'.
at::Tensor kernel_regression(const HeadMixer::Heads& heads,
                             const std::optional<at::Tensor>& metric,
                             const std::optional<KeyWeights>& weights,
                             const RegressionOptions& options,
                             const Pass& pass);

}  // namespace elliptical::nn
