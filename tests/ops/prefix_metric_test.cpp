// SPDX-License-Identifier: MIT
//
// Streaming: tokens fed one by one, or in pieces, give the full-sequence result.
#include "elliptical/ops/prefix_metric.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include "elliptical/ops/attention.h"
#include "elliptical/ops/metric.h"

namespace elliptical::prefix_metric_test {
namespace {

using ops::MetricScaling;
using ops::MetricScope;

constexpr int64_t B = 2, H = 3, N = 29, D = 8;

/// Rows [begin, end) of a (B, H, N, D) tensor.
at::Tensor tokens(const at::Tensor& t, int64_t begin, int64_t end) {
  return t.narrow(2, begin, end - begin);
}

class PrefixMetric : public ::testing::TestWithParam<MetricScaling> {};

TEST_P(PrefixMetric, InPiecesEqualsTheWhole) {
  torch::manual_seed(1);
  const at::Tensor v = torch::randn({B, H, N, D}), v_prev = torch::randn({B, H, N, D});
  const at::Tensor whole =
      ops::metric(v, v_prev, {.scope = MetricScope::kPrefix, .scaling = GetParam(), .delta = 3.0});
  for (const int64_t piece : {int64_t{1}, int64_t{4}, N}) {
    ops::PrefixMetricState state(GetParam(), 3.0);
    std::vector<at::Tensor> rows;
    for (int64_t n = 0; n < N; n += piece) {
      const int64_t end = std::min(N, n + piece);
      rows.push_back(state.update(tokens(v, n, end), tokens(v_prev, n, end)));
    }
    EXPECT_TRUE(torch::allclose(torch::cat(rows, 2), whole, 1e-6, 1e-7)) << piece;
    EXPECT_EQ(state.count(), N);
  }
}

INSTANTIATE_TEST_SUITE_P(Scalings,
                         PrefixMetric,
                         ::testing::Values(MetricScaling::kMax,
                                           MetricScaling::kMean,
                                           MetricScaling::kNone),
                         [](const auto& test) { return std::string(ops::to_string(test.param)); });

TEST(PrefixMetric, AnEmptyPieceChangesNothing) {
  ops::PrefixMetricState state;
  EXPECT_EQ(state.update(torch::zeros({B, H, 0, D}), torch::zeros({B, H, 0, D})).size(2), 0);
  const at::Tensor v = torch::randn({B, H, 1, D});
  const at::Tensor row = state.update(v, torch::zeros_like(v));
  state.update(torch::zeros({B, H, 0, D}), torch::zeros({B, H, 0, D}));
  EXPECT_EQ(state.count(), 1);
  EXPECT_TRUE(torch::allclose(row, ops::metric(v, torch::zeros_like(v))));
}

TEST(PrefixMetric, WithCachedKeysDecodesWhatTheWholeSequenceGives) {
  torch::manual_seed(2);
  const auto normal = [] { return torch::randn({B, H, N, D}); };
  const at::Tensor q = normal(), k = normal(), v = normal(), v_prev = normal();
  const at::Tensor whole = ops::attention(
      q, k, v, ops::metric(v, v_prev, {.scope = MetricScope::kPrefix}), {.is_causal = true});
  ops::PrefixMetricState state;
  for (int64_t n = 0; n < N; ++n) {
    const at::Tensor m = state.update(tokens(v, n, n + 1), tokens(v_prev, n, n + 1));
    const at::Tensor out = ops::attention(tokens(q, n, n + 1), tokens(k, 0, n + 1),
                                          tokens(v, 0, n + 1), m, {.is_causal = true});
    ASSERT_TRUE(torch::allclose(out, tokens(whole, n, n + 1), 1e-5, 1e-6)) << "token " << n;
  }
}

}  // namespace
}  // namespace elliptical::prefix_metric_test
