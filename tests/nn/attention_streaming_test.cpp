// SPDX-License-Identifier: MIT
//
// Tokens fed piece by piece give what the whole sequence gives.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "elliptical/nn/attention/key_value_cache.h"
#include "tests/support/attention_stack.h"
#include "tests/support/attention_variants.h"

namespace elliptical::nn {
namespace {

using support::AttentionStack;
using support::AttentionVariant;
using support::wave;

constexpr AttentionShape kShape{.dim = 12, .num_heads = 3, .is_causal = true};

at::Tensor stream(const AttentionStack& stack, const at::Tensor& x, std::vector<int64_t> pieces) {
  std::vector<std::unique_ptr<AttentionCache>> caches;
  std::vector<at::Tensor> outputs;
  int64_t begin = 0;
  for (const int64_t piece : pieces) {
    Pass pass;
    pass.caches = &caches;
    outputs.push_back(stack.forward(x.narrow(1, begin, piece), pass));
    begin += piece;
  }
  return at::cat(outputs, 1);
}

class AttentionStreaming : public ::testing::TestWithParam<AttentionVariant> {};

TEST_P(AttentionStreaming, EqualsTheWholeSequence) {
  const torch::NoGradGuard no_grad;
  const AttentionStack stack(GetParam(), kShape);
  const auto reason = stack.layers.back()->why_no_streaming();
  ASSERT_EQ(!reason.has_value(), GetParam().can().streams);
  if (reason) return;
  const at::Tensor x = wave({2, 12, 12});
  const at::Tensor whole = stack.forward(x);
  const double size = whole.abs().max().item<double>();
  for (const auto& pieces : {std::vector<int64_t>(12, 1), {12}, {5, 1, 3, 3}}) {
    const at::Tensor pieced = stream(stack, x, pieces);
    // Sums of float in another order, through three layers.
    EXPECT_LE((pieced - whole).abs().max().item<double>() / size, 1e-5);
  }
}

INSTANTIATE_TEST_SUITE_P(All,
                         AttentionStreaming,
                         ::testing::ValuesIn(support::causal_attention_variants()),
                         support::VariantName{});

TEST(AttentionStreaming, SaysWhyItCanNot) {
  const auto reason = [](std::vector<std::string> assignments) {
    const AttentionVariant variant{.attention = "elliptical",
                                   .assignments = std::move(assignments)};
    return AttentionStack(variant.options(), kShape).layers.back()->why_no_streaming().value_or("");
  };
  EXPECT_EQ(
      reason({"metric.scope=sequence", "metric_lookahead=true"}),
      "metric.scope = \"sequence\" reads the whole sequence, so that each new token changes the "
      "metric of all tokens before it (train with metric.scope = \"prefix\")");
  EXPECT_EQ(reason({"metric.estimator=median"}),
            "metric.estimator = \"median\" has no running sum to go on from (difference, quotient, "
            "isotropic and the controls stream)");
}

TEST(KeyValueCache, GrowsByDoublingAndKeepsWhatItHas) {
  KeyValueCache cache;
  const at::Tensor k = wave({2, 3, 300, 4}), v = wave({2, 3, 300, 4}, 0.3);
  int64_t num_growths = 0, capacity = 0;
  for (int64_t n = 0; n < 300; ++n) {
    const auto [all_k, all_v] = cache.append(k.narrow(2, n, 1), v.narrow(2, n, 1));
    ASSERT_TRUE(at::equal(all_k, k.narrow(2, 0, n + 1)));
    ASSERT_TRUE(at::equal(all_v, v.narrow(2, 0, n + 1)));
    num_growths += cache.capacity() != capacity;
    capacity = cache.capacity();
  }
  EXPECT_EQ(num_growths, 4);  // 64, 128, 256, 512
}

TEST(KeyValueCache, RefusesAnotherNumberOfSequences) {
  KeyValueCache cache;
  cache.append(wave({2, 3, 1, 4}), wave({2, 3, 1, 4}));
  try {
    cache.append(wave({1, 3, 1, 4}), wave({1, 3, 1, 4}));
    FAIL();
  } catch (const c10::ValueError& error) {
    EXPECT_STREQ(error.what_without_backtrace(),
                 "stream: tokens must continue the stream of 2 sequences, got 1");
  }
}

}  // namespace
}  // namespace elliptical::nn
