// SPDX-License-Identifier: MIT
#include "elliptical/nn/attention/favor.h"

#include <torch/torch.h>

#include <algorithm>
#include <limits>

#include "elliptical/nn/initialize.h"

namespace elliptical::nn {
namespace {

/// Tokens of a chunk. Work per token is F * kChunk inside the chunk and 2 F D through the state.
constexpr int64_t kChunk = 64;
constexpr double kInfinity = std::numeric_limits<double>::infinity();

at::Tensor normal(at::IntArrayRef sizes, RandomKey key) {
  at::Tensor x = at::empty(sizes, at::kFloat);
  fill_normal(x, 0.0, 1.0, key);
  return x.to(at::kDouble);
}

/// Blocks of n rows of Haar-distributed orthogonal matrices (n, n), each row stretched to the
/// length of a Gaussian vector of its own.
at::Tensor orthogonal_rows(int64_t num_rows, int64_t n, RandomKey key) {
  std::vector<at::Tensor> blocks;
  for (int64_t begin = 0; begin < num_rows; begin += n) {
    const RandomKey own = key.derive("block").derive(static_cast<uint64_t>(begin));
    const auto [q, r] = torch::linalg_qr(normal({n, n}, own));
    // Without the signs, Q would depend on how the decomposition chooses them.
    const at::Tensor haar = q * r.diagonal().sign();
    blocks.push_back(haar.t().narrow(0, 0, std::min(n, num_rows - begin)));
  }
  const at::Tensor lengths = normal({num_rows, n}, key.derive("lengths")).norm(2, {1}, true);
  return at::cat(blocks) * lengths;
}

/// [v, 1]: numerator and denominator are one product.
at::Tensor with_ones(const at::Tensor& v) {
  return at::cat({v, at::ones({v.size(0), v.size(1), v.size(2), 1}, v.options())}, -1);
}

/// sums (..., Dv + 1) = [numerator, denominator] -> (..., Dv).
at::Tensor divided(const at::Tensor& sums, int64_t num_features, const FavorOptions& options) {
  const int64_t Dv = sums.size(-1) - 1;
  // A query whose features meet no key gives 0, not NaN.
  const double smallest = std::numeric_limits<float>::min();
  const at::Tensor denominator =
      (sums.narrow(-1, Dv, 1) + static_cast<double>(num_features) * options.denominator_epsilon)
          .clamp_min(smallest);
  return sums.narrow(-1, 0, Dv) / denominator;
}

/// Features of queries as they enter the product: epsilon included.
at::Tensor query_features(const FavorFeatures& q, const FavorOptions& options) {
  if (options.stabilised) return q.values + options.epsilon;  // its own scale cancels in the ratio
  return q.values * q.log_scale.exp() + options.epsilon;
}

/// log_scale that keys are divided by, seen from every key: the largest among `log_scale` so far.
at::Tensor running_scale(const at::Tensor& log_scale, const FavorOptions& options) {
  const at::Tensor constant = log_scale.detach();
  return options.stabilised ? std::get<0>(constant.cummax(2)) : at::zeros_like(constant);
}

}  // namespace

std::string_view to_string(FavorProjection projection) {
  switch (projection) {
    case FavorProjection::kOrthogonal:
      return "orthogonal";
    case FavorProjection::kGaussian:
      return "gaussian";
    default:
      return "orthogonal-columns";
  }
}

FavorProjection favor_projection(std::string_view name) {
  for (const FavorProjection kind : {FavorProjection::kOrthogonal, FavorProjection::kGaussian}) {
    if (name == to_string(kind)) return kind;
  }
  return FavorProjection::kOrthogonalColumns;
}

at::Tensor draw_favor_projection(FavorProjection kind, int64_t m, int64_t D, RandomKey key) {
  const at::NoGradGuard no_grad;
  switch (kind) {
    case FavorProjection::kOrthogonal:
      return orthogonal_rows(m, D, key).to(at::kFloat);
    case FavorProjection::kGaussian:
      return normal({m, D}, key).to(at::kFloat);
    default:
      return orthogonal_rows(D, m, key).t().contiguous().to(at::kFloat);
  }
}

FavorFeatures favor_features(const at::Tensor& x,
                             const at::Tensor& W,
                             const FavorOptions& options) {
  at::Tensor logits = x.matmul(W.t());  // (B, H, N, m)
  const at::Tensor half_square = x.square().sum(-1, /*keepdim=*/true) / 2;
  at::Tensor largest;
  {
    const at::NoGradGuard no_grad;
    largest = (options.hyperbolic ? logits.abs() : logits).amax(-1, /*keepdim=*/true);
  }
  if (options.hyperbolic) logits = at::cat({logits, -logits}, -1);
  return {.values = (logits - largest).exp(), .log_scale = largest - half_square};
}

at::Tensor favor_two_sided(const FavorFeatures& q,
                           const FavorFeatures& k,
                           const at::Tensor& v,
                           const std::optional<at::Tensor>& real,
                           const FavorOptions& options) {
  at::Tensor log_scale = k.log_scale;
  if (real) log_scale = at::where(*real, log_scale, -kInfinity);
  at::Tensor largest = log_scale.detach().amax(2, /*keepdim=*/true);  // (B, H, 1, 1)
  largest =
      options.stabilised ? at::where(largest.isfinite(), largest, 0.0) : at::zeros_like(largest);
  at::Tensor keys = k.values * (log_scale - largest).exp() + options.epsilon;
  at::Tensor values = with_ones(v);
  if (real) {
    keys = at::where(*real, keys, 0.0);
    values = at::where(*real, values, 0.0);
  }
  const at::Tensor sums = keys.transpose(-2, -1).matmul(values);  // (B, H, F, Dv + 1)
  return divided(query_features(q, options).matmul(sums), keys.size(-1), options);
}

at::Tensor favor_causal(const FavorFeatures& q,
                        const FavorFeatures& k,
                        const at::Tensor& v,
                        const FavorOptions& options,
                        FavorState* state) {
  FavorState own;
  FavorState& so_far = state ? *state : own;
  const int64_t N = v.size(2);
  const at::Tensor values = with_ones(v), features = query_features(q, options);
  const at::Tensor seen = at::ones({kChunk, kChunk}, v.options().dtype(at::kBool)).tril();

  std::vector<at::Tensor> outputs;
  for (int64_t begin = 0; begin < N; begin += kChunk) {
    const int64_t T = std::min(kChunk, N - begin);
    const auto chunk = [&](const at::Tensor& t) { return t.narrow(2, begin, T); };
    const at::Tensor queries = chunk(features), keys = chunk(k.values), scale = chunk(k.log_scale),
                     chunk_values = chunk(values);
    at::Tensor largest = running_scale(scale, options);  // (B, H, T, 1), one for each query
    if (so_far.sums.defined()) largest = at::maximum(largest, so_far.log_scale);

    // Inside the chunk: the masked product. Masked before exp, where it may overflow.
    const at::Tensor weight =
        at::where(seen.narrow(0, 0, T).narrow(1, 0, T), scale.transpose(-2, -1) - largest,
                  -kInfinity)
            .exp();  // (B, H, T, T)
    at::Tensor sums = (queries.matmul(keys.transpose(-2, -1)) * weight).matmul(chunk_values);
    // All chunks before.
    if (so_far.sums.defined()) {
      sums = sums + queries.matmul(so_far.sums) * (so_far.log_scale - largest).exp();
    }
    // epsilon in the features of the keys: the same for all of them, so their values are summed.
    at::Tensor plain = chunk_values.cumsum(2);
    if (so_far.values.defined()) plain = plain + so_far.values;
    if (options.epsilon > 0) {
      sums = sums + options.epsilon * queries.sum(-1, /*keepdim=*/true) * plain;
    }
    outputs.push_back(sums);

    const bool needed = state != nullptr || begin + T < N;
    if (!needed) break;
    const at::Tensor last = largest.narrow(2, T - 1, 1);
    at::Tensor next = (keys * (scale - last).exp()).transpose(-2, -1).matmul(chunk_values);
    if (so_far.sums.defined()) next = next + so_far.sums * (so_far.log_scale - last).exp();
    so_far = {.sums = next, .log_scale = last, .values = plain.narrow(2, T - 1, 1)};
  }
  return divided(at::cat(outputs, 2), k.values.size(-1), options);
}

at::Tensor favor_map(const FavorFeatures& q,
                     const FavorFeatures& k,
                     const std::optional<at::Tensor>& real,
                     bool is_causal,
                     const FavorOptions& options) {
  const int64_t N = q.values.size(2), M = k.values.size(2);
  at::Tensor seen = at::ones({N, M}, at::kBool);
  if (is_causal) seen = seen.tril(M - N);
  if (real) seen = seen.logical_and(real->transpose(-2, -1));
  const at::Tensor scale = at::where(seen, k.log_scale.transpose(-2, -1), -kInfinity);
  at::Tensor largest = scale.amax(-1, /*keepdim=*/true);  // (B, H, N, 1)
  largest =
      options.stabilised ? at::where(largest.isfinite(), largest, 0.0) : at::zeros_like(largest);
  const at::Tensor features = query_features(q, options);
  const at::Tensor scores = features.matmul(k.values.transpose(-2, -1)) * (scale - largest).exp() +
                            options.epsilon * features.sum(-1, /*keepdim=*/true);
  const at::Tensor weights = at::where(seen, scores, 0.0);
  return divided(at::cat({weights, weights.sum(-1, /*keepdim=*/true)}, -1), k.values.size(-1),
                 options);
}

}  // namespace elliptical::nn
