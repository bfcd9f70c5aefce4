// SPDX-License-Identifier: MIT
//
// Positive random features for the softmax kernel, "FAVOR+" (Choromanski et al., ICLR 2021), and
// attention computed through them in time and memory linear in the number of tokens:
//
//   phi(x)_r = exp(w_r . x - |x|^2 / 2),   E[phi(q) . phi(k)] / F = exp(q . k)
//   out[i]   = sum_j phi(q_i) . phi(k_j) v_j / sum_j phi(q_i) . phi(k_j)
//
// w_r are the rows of a random matrix W (m, D); hyperbolic features use w_r and -w_r, so that there
// are F = 2 m of them, else F = m. The factor 1 / F cancels and is left out.
//
// Stabilisation. A feature is stored as exp(log_scale) * values with values <= 1 and one scale per
// token, so that nothing overflows. `epsilon` is added to the features after division by a scale:
// that of the token itself for queries, the largest one among the keys for keys. In causal
// attention "the keys" of query i are those up to i, so row i is what two-sided attention over the
// first i + 1 tokens gives for its last one: no bit of the past depends on the future. A maximum
// over the whole sequence, as it is usually written, would leak through epsilon and rounding.
// Maxima carry no gradient; without epsilon they cancel and the gradient is exact.
#pragma once

#include <ATen/core/Tensor.h>

#include <optional>
#include <string>
#include <string_view>

#include "elliptical/base/random.h"

namespace elliptical::nn {

/// How the entries of W depend on each other; each row alone is N(0, I) in the first two.
enum class FavorProjection {
  kOrthogonal,         ///< blocks of D orthogonal rows with lengths of Gaussian vectors
  kGaussian,           ///< independent entries
  kOrthogonalColumns,  ///< as released with the language model: orthogonal along the input axis
};
std::string_view to_string(FavorProjection projection);
FavorProjection favor_projection(std::string_view name);

/// W (m, D), float, as a function of the key alone.
at::Tensor draw_favor_projection(FavorProjection kind, int64_t m, int64_t D, RandomKey key);

struct FavorOptions {
  bool hyperbolic = true;
  bool stabilised = true;            ///< false: epsilon is added to features as they are
  double epsilon = 1e-4;             ///< added to every feature
  double denominator_epsilon = 0.0;  ///< added to the denominator, features divided by sqrt(F)
};

/// phi = exp(log_scale) * values.
struct FavorFeatures {
  at::Tensor values;     ///< (B, H, N, F), in (0, 1]
  at::Tensor log_scale;  ///< (B, H, N, 1)
};

/// x (B, H, N, D), W (m, D).
FavorFeatures favor_features(const at::Tensor& x, const at::Tensor& W, const FavorOptions& options);

/// Sums over the keys so far, all that a stream has to keep: F (Dv + 1) numbers per head.
struct FavorState {
  at::Tensor sums;       ///< (B, H, F, Dv + 1), sum_j phi(k_j) [v_j, 1] / exp(log_scale)
  at::Tensor log_scale;  ///< (B, H, 1, 1)
  at::Tensor values;     ///< (B, H, 1, Dv + 1), sum_j [v_j, 1]
};

/// Every query sees every key. `real` (B, 1, M, 1) bool says which keys are no padding; all are
/// when absent. v (B, H, M, Dv) -> (B, H, N, Dv).
at::Tensor favor_two_sided(const FavorFeatures& q,
                           const FavorFeatures& k,
                           const at::Tensor& v,
                           const std::optional<at::Tensor>& real,
                           const FavorOptions& options);

/// Query i sees keys j <= i and, with a state, all keys that went into it; the keys given are then
/// added to it. Works in chunks of tokens: memory is linear, forward and backward.
at::Tensor favor_causal(const FavorFeatures& q,
                        const FavorFeatures& k,
                        const at::Tensor& v,
                        const FavorOptions& options,
                        FavorState* state = nullptr);

/// The attention map (B, H, N, M) that the two functions above never build, for analyses and tests.
at::Tensor favor_map(const FavorFeatures& q,
                     const FavorFeatures& k,
                     const std::optional<at::Tensor>& real,
                     bool is_causal,
                     const FavorOptions& options);

}  // namespace elliptical::nn
