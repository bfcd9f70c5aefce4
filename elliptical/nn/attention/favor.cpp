// SPDX-License-Identifier: MIT
#include "elliptical/nn/attention/favor.h"

#include <torch/torch.h>

#include <algorithm>
#include <limits>

#include "elliptical/base/infinity.h"
#include "elliptical/nn/initialize.h"

namespace elliptical::nn {
namespace {

/// Tokens of a chunk. Work per token is F * kChunk inside the chunk and 2 F D through the state.
constexpr int64_t kChunk = 32;

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

/// logits (..., m) -> exp([logits, -logits] - largest) (..., 2 m), in fewer passes over memory than
/// separate operations take, and without a forward-mode derivative. `largest` counts as constant.
struct HyperbolicExp : torch::autograd::Function<HyperbolicExp> {
  static at::Tensor forward(torch::autograd::AutogradContext* context,
                            const at::Tensor& logits,
                            const at::Tensor& largest) {
    const int64_t m = logits.size(-1);
    std::vector<int64_t> sizes = logits.sizes().vec();
    sizes.back() = 2 * m;
    at::Tensor values = at::empty(sizes, logits.options());
    at::Tensor plus = values.narrow(-1, 0, m), minus = values.narrow(-1, m, m);
    at::sub_out(plus, logits, largest);
    at::sub_out(minus, -largest, logits);
    values.exp_();
    context->save_for_backward({values});
    return values;
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 torch::autograd::variable_list d_values) {
    const at::Tensor d = d_values[0] * context->get_saved_variables()[0];
    const int64_t m = d.size(-1) / 2;
    return {d.narrow(-1, 0, m) - d.narrow(-1, m, m), at::Tensor()};
  }
};

at::Tensor hyperbolic_exp(const at::Tensor& logits, const at::Tensor& largest) {
  const bool has_tangent = logits._fw_grad(/*level=*/0).defined();
  return has_tangent ? (at::cat({logits, -logits}, -1) - largest).exp()
                     : HyperbolicExp::apply(logits, largest);
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
  const at::Tensor logits = x.matmul(W.t());  // (B, H, N, m)
  const at::Tensor half_square = x.square().sum(-1, /*keepdim=*/true) / 2;
  const at::Tensor constant = logits.detach();
  const at::Tensor largest =
      (options.hyperbolic ? constant.abs() : constant).amax(-1, /*keepdim=*/true);
  return {.values = options.hyperbolic ? hyperbolic_exp(logits, largest) : (logits - largest).exp(),
          .log_scale = largest - half_square};
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

// With c the chunk of query i, S_c the sums over the chunks before it (in the state's scale r_c)
// and l_i the largest log_scale up to i:
//
//   sums[i] = sum_{j <= i in c} phi(q_i) . phi(k_j) exp(-l_i) [v_j, 1]
//             + exp(r_c - l_i) phi(q_i) S_c
//
// Products run over all chunks at once; only S_c = decay * S_(c-1) + own goes from chunk to chunk.
// All vectors [v, 1] have one more column, 0 in keys and 1 in S, in which queries sum themselves.
at::Tensor favor_causal(const FavorFeatures& q,
                        const FavorFeatures& k,
                        const at::Tensor& v,
                        const FavorOptions& options,
                        FavorState* state) {
  const int64_t B = v.size(0), H = v.size(1), N = v.size(2), E = v.size(3) + 1;
  const int64_t F = k.values.size(-1), T = std::min(kChunk, N), C = (N + T - 1) / T;
  const bool goes_on = state != nullptr && state->sums.defined();
  const auto in_chunks = [&](const at::Tensor& t, double padding) {  // (B, H, C, T, ...)
    const at::Tensor padded =
        C * T == N ? t : at::constant_pad_nd(t, {0, 0, 0, C * T - N}, padding);
    return padded.unflatten(2, {C, T});
  };
  const at::Tensor ones = with_ones(v);
  const at::Tensor queries = in_chunks(query_features(q, options), 0.0);
  const at::Tensor keys = in_chunks(k.values, 0.0);
  const at::Tensor values = in_chunks(at::constant_pad_nd(ones, {0, 1}), 0.0);
  const at::Tensor scale = in_chunks(k.log_scale, -kInfinity);

  at::Tensor largest = running_scale(scale.flatten(2, 3), options);
  if (goes_on) largest = at::maximum(largest, state->log_scale);
  // Without a past any scale will do that is at most that of the first query.
  const at::Tensor first = goes_on ? state->log_scale : largest.narrow(2, 0, 1);
  largest = largest.unflatten(2, {C, T});
  const at::Tensor end = largest.narrow(3, T - 1, 1);  // (B, H, C, 1, 1)
  const at::Tensor start = at::cat({first.unsqueeze(2), end.narrow(2, 0, C - 1)}, 2);

  // Inside the chunks: the masked product. Masked before exp, where it may overflow.
  const at::Tensor seen = at::ones({T, T}, v.options().dtype(at::kBool)).tril();
  const at::Tensor weight =
      at::where(seen, scale.transpose(-2, -1) - largest, -kInfinity).exp();  // (B, H, C, T, T)
  const at::Tensor inside = (queries.matmul(keys.transpose(-2, -1)) * weight).matmul(values);

  // What comes before each chunk.
  const at::Tensor own = keys.transpose(-2, -1).matmul(values * (scale - end).exp());
  const at::Tensor decay = at::constant_pad_nd((start - end).exp().expand({B, H, C, 1, E}), {0, 1},
                                               1.0);  // (B, H, C, 1, E + 1)
  const at::Tensor past = goes_on ? state->sums : at::zeros({B, H, F, E}, v.options());
  std::vector<at::Tensor> before{at::constant_pad_nd(past, {0, 1}, 1.0)};
  const std::vector<at::Tensor> owns = own.unbind(2), decays = decay.unbind(2);  // (B, H, F, E + 1)
  for (size_t c = 0; c < owns.size(); ++c) {
    before.push_back(at::addcmul(owns[c], before.back(), decays[c]));
  }
  const at::Tensor last = before.back();
  before.pop_back();
  const at::Tensor outside = queries.matmul(at::stack(before, 2));  // (B, H, C, T, E + 1)

  const auto tokens = [&](const at::Tensor& t) { return t.flatten(2, 3).narrow(2, 0, N); };
  at::Tensor sums =
      tokens(inside.narrow(-1, 0, E) + outside.narrow(-1, 0, E) * (start - largest).exp());
  // epsilon in the features of the keys: the same for all of them, so their values are summed.
  at::Tensor plain = ones.cumsum(2);
  if (goes_on) plain = plain + state->values;
  if (options.epsilon > 0) {
    sums = sums + options.epsilon * tokens(outside.narrow(-1, E, 1)) * plain;
  }
  if (state != nullptr) {
    *state = {.sums = last.narrow(-1, 0, E),
              .log_scale = end.select(2, C - 1),
              .values = plain.narrow(2, N - 1, 1)};
  }
  return divided(sums, F, options);
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
