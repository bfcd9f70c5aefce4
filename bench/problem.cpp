// SPDX-License-Identifier: MIT
#include "bench/problem.h"

#include <torch/torch.h>

#include <algorithm>
#include <limits>

namespace elliptical::bench {
namespace {

/// Above this many scores only one head is checked.
constexpr int64_t kMaxCheckedScores = int64_t{1} << 24;

/// Two roundings of float: below this an error can not be told from the exact result.
constexpr double kErrorFloor = 2.4e-7;

/// `problem` in another dtype, or one head of it: heads do not see each other. Batch item 0 has the
/// most padding.
Problem checked_part(const Problem& problem, at::ScalarType dtype) {
  const auto& [B, H, Hk, N, M, D, Dv] = problem.shape.sizes;
  const bool is_whole = B * H * N * M <= kMaxCheckedScores;
  const auto part = [&](const at::Tensor& x) {
    const at::Tensor cut = is_whole ? x : x.narrow(0, 0, 1).narrow(1, 0, 1);
    return (cut.is_floating_point() ? cut.to(dtype) : cut).detach();
  };
  const auto optional_part = [&](const std::optional<at::Tensor>& x) {
    return x ? std::optional(part(*x)) : std::nullopt;
  };
  Problem result = problem;
  for (at::Tensor Problem::* x : {&Problem::q, &Problem::k, &Problem::v}) {
    result.*x = part(problem.*x).requires_grad_();
  }
  result.metric = part(problem.metric);
  result.d_out = part(problem.d_out);
  result.key_padding_mask = optional_part(problem.key_padding_mask);
  result.additive_mask = optional_part(problem.additive_mask);
  return result;
}

Results unfused_results(const Problem& problem, bool with_metric, bool with_grads) {
  Results results;
  results.out = unfused_attention(problem, problem.q, problem.k, problem.v,
                                  with_metric ? std::optional(problem.metric) : std::nullopt);
  if (with_grads) {
    const auto grads =
        torch::autograd::grad({results.out}, {problem.q, problem.k, problem.v}, {problem.d_out});
    results.grads = {grads[0], grads[1], grads[2]};
  }
  return results;
}

/// max |x - exact| / max |exact|, on the part of x that `exact` covers.
double relative_error(const at::Tensor& x, const at::Tensor& exact) {
  const at::Tensor part = x.slice(0, 0, exact.size(0)).slice(1, 0, exact.size(1)).to(at::kDouble);
  return ((part - exact).abs().max() / exact.abs().max()).item<double>();
}

}  // namespace

Problem::Problem(const AttentionCase& c) : shape(c) {
  auto generator = at::make_generator<at::CPUGeneratorImpl>(c.seed);
  const auto& [B, H, Hk, N, M, D, Dv] = c.sizes;
  const auto normal = [&](at::IntArrayRef sizes) {
    return at::randn(sizes, generator, at::kFloat);
  };
  q = (c.spread * normal({B, H, N, D})).requires_grad_();
  k = (c.spread * normal({B, Hk, M, D})).requires_grad_();
  v = normal({B, Hk, M, Dv}).requires_grad_();
  d_out = normal({B, H, N, Dv});
  metric = at::rand(c.shape_of(c.metric), generator, at::kFloat);
  if (!c.mask_add.empty()) additive_mask = normal(c.shape_of(c.mask_add));
  if (!c.key_lengths.empty()) {
    key_lengths = at::tensor(c.key_lengths, at::kLong);
    const at::Tensor is_real = at::arange(M).unsqueeze(0) < key_lengths->unsqueeze(1);  // (B, M)
    key_padding_mask = is_real.view({B, 1, 1, M});
    d_out = d_out * is_real.view({B, 1, M, 1});  // a loss does not look at padding
  }
}

at::Tensor unfused_attention(const Problem& problem,
                             const at::Tensor& q,
                             const at::Tensor& k,
                             const at::Tensor& v,
                             const std::optional<at::Tensor>& metric) {
  const int64_t num_tokens = problem.shape.sizes.N;
  const double scale = problem.shape.logit_scale();
  at::Tensor scores = at::matmul((metric ? q * *metric : q) * scale, k.transpose(-2, -1));
  if (problem.additive_mask) scores = scores + *problem.additive_mask;
  const double hidden = -std::numeric_limits<double>::infinity();
  if (problem.key_padding_mask) scores = scores.masked_fill(~*problem.key_padding_mask, hidden);
  if (problem.shape.is_causal) {
    const at::Tensor is_future = at::ones({num_tokens, num_tokens}, at::kBool).triu(1);
    scores = scores.masked_fill(is_future, hidden);
  }
  return at::matmul(at::softmax(scores, -1), v);
}

std::vector<TensorError> errors(const Problem& problem, const Results& results, bool with_metric) {
  const bool with_grads = results.grads.has_value();
  const Problem exact_problem = checked_part(problem, at::kDouble);
  const Results exact = unfused_results(exact_problem, with_metric, with_grads);
  const Results rounded =
      unfused_results(checked_part(problem, at::kFloat), with_metric, with_grads);

  // Outputs of padded queries are not compared: torch computes them, we leave them zero.
  const auto real_rows = [&](const at::Tensor& out) {
    if (!exact_problem.key_padding_mask) return out;
    const at::Tensor mask = exact_problem.key_padding_mask->transpose(2, 3);  // (B, 1, N, 1)
    return out.slice(0, 0, mask.size(0)) * mask;
  };
  const at::NoGradGuard no_grad;
  const auto compare = [](const char* name, const at::Tensor& given, const at::Tensor& float_result,
                          const at::Tensor& exact_result) {
    return TensorError{name, relative_error(given, exact_result),
                       2 * std::max(kErrorFloor, relative_error(float_result, exact_result))};
  };
  std::vector<TensorError> result = {
      compare("out", real_rows(results.out), real_rows(rounded.out), real_rows(exact.out))};
  constexpr std::array kGradNames = {"dq", "dk", "dv"};
  for (size_t i = 0; with_grads && i < kGradNames.size(); ++i) {
    result.push_back(
        compare(kGradNames[i], results.grads->at(i), rounded.grads->at(i), exact.grads->at(i)));
  }
  return result;
}

}  // namespace elliptical::bench
