// SPDX-License-Identifier: MIT
//
// Wrong arguments of attention: each message is read, word for word.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <functional>
#include <limits>

#include "elliptical/ops/attention.h"
#include "tests/support/torch_refusal.h"

namespace elliptical::attention_checks_test {
namespace {

using support::refusal;

/// A call that is right: q (2, 4, 6, 8), k (2, 2, 5, 8), v (2, 2, 5, 3). Each case breaks one
/// thing.
struct Call {
  at::Tensor q = torch::zeros({2, 4, 6, 8});
  at::Tensor k = torch::zeros({2, 2, 5, 8});
  at::Tensor v = torch::zeros({2, 2, 5, 3});
  std::optional<at::Tensor> metric = torch::ones({2, 4, 1, 8});
  ops::AttentionOptions options;
};

struct WrongCall {
  std::string name;
  std::function<void(Call&)> spoil;
  std::string message;
};

std::ostream& operator<<(std::ostream& stream, const WrongCall& c) { return stream << c.name; }

std::vector<WrongCall> wrong_calls() {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  return {
      {"q_rank", [](Call& c) { c.q = torch::zeros({6, 8}); },
       "attention: q must be (B, H, N, D), got (6, 8)"},
      {"k_rank", [](Call& c) { c.k = torch::zeros({2, 5, 8}); },
       "attention: k must be (B, Hk, M, D), got (2, 5, 8)"},
      {"v_rank", [](Call& c) { c.v = torch::zeros({}); },
       "attention: v must be (B, Hk, M, Dv), got ()"},
      {"q_integer", [](Call& c) { c.q = c.q.to(torch::kLong); },
       "attention: q must have a floating point dtype, got Long"},
      {"k_dtype", [](Call& c) { c.k = c.k.to(torch::kDouble); },
       "attention: k must have q's dtype Float, got Double"},
      {"v_dtype", [](Call& c) { c.v = c.v.to(torch::kBFloat16); },
       "attention: v must have q's dtype Float, got BFloat16"},
      {"metric_dtype", [](Call& c) { c.metric = c.metric->to(torch::kHalf); },
       "attention: metric must have q's dtype Float, got Half"},
      {"k_device", [](Call& c) { c.k = c.k.to(torch::kMeta); },
       "attention: k must be on q's device cpu, got meta"},
      {"v_device", [](Call& c) { c.v = c.v.to(torch::kMeta); },
       "attention: v must be on q's device cpu, got meta"},
      {"metric_device", [](Call& c) { c.metric = c.metric->to(torch::kMeta); },
       "attention: metric must be on q's device cpu, got meta"},
      {"k_batch", [](Call& c) { c.k = torch::zeros({3, 2, 5, 8}); },
       "attention: k must be (B, Hk, M, D) = (2, Hk, M, 8), got (3, 2, 5, 8)"},
      {"k_width", [](Call& c) { c.k = torch::zeros({2, 2, 5, 7}); },
       "attention: k must be (B, Hk, M, D) = (2, Hk, M, 8), got (2, 2, 5, 7)"},
      {"v_keys", [](Call& c) { c.v = torch::zeros({2, 2, 4, 3}); },
       "attention: v must be (B, Hk, M, Dv) = (2, 2, 5, Dv), got (2, 2, 4, 3)"},
      {"v_heads", [](Call& c) { c.v = torch::zeros({2, 4, 5, 3}); },
       "attention: v must be (B, Hk, M, Dv) = (2, 2, 5, Dv), got (2, 4, 5, 3)"},
      {"heads_do_not_divide",
       [](Call& c) {
         c.k = torch::zeros({2, 3, 5, 8});
         c.v = torch::zeros({2, 3, 5, 3});
       },
       "attention: q's head count H must be a multiple of k's Hk, got H = 4 and Hk = 3"},
      {"no_key_heads",
       [](Call& c) {
         c.k = torch::zeros({2, 0, 5, 8});
         c.v = torch::zeros({2, 0, 5, 3});
       },
       "attention: q's head count H must be a multiple of k's Hk, got H = 4 and Hk = 0"},
      {"metric_rank", [](Call& c) { c.metric = torch::ones({8}); },
       "attention: metric must be (B|1, H|1, 1|N, D) = (2|1, 4|1, 1|6, 8), got (8)"},
      {"metric_width", [](Call& c) { c.metric = torch::ones({2, 4, 1, 1}); },
       "attention: metric must be (B|1, H|1, 1|N, D) = (2|1, 4|1, 1|6, 8), got (2, 4, 1, 1)"},
      {"metric_heads", [](Call& c) { c.metric = torch::ones({2, 2, 1, 8}); },
       "attention: metric must be (B|1, H|1, 1|N, D) = (2|1, 4|1, 1|6, 8), got (2, 2, 1, 8)"},
      {"metric_rows", [](Call& c) { c.metric = torch::ones({2, 4, 5, 8}); },
       "attention: metric must be (B|1, H|1, 1|N, D) = (2|1, 4|1, 1|6, 8), got (2, 4, 5, 8)"},
      {"mask_dtype", [](Call& c) { c.options.attn_mask = torch::ones({6, 5}, torch::kLong); },
       "attention: attn_mask must be Bool or have q's dtype Float, got Long"},
      {"mask_shape", [](Call& c) { c.options.attn_mask = torch::zeros({6, 6}); },
       "attention: attn_mask must broadcast to (B, H, N, M) = (2, 4, 6, 5), got (6, 6)"},
      {"mask_rank", [](Call& c) { c.options.attn_mask = torch::zeros({1, 2, 4, 6, 5}); },
       "attention: attn_mask must broadcast to (B, H, N, M) = (2, 4, 6, 5), got (1, 2, 4, 6, 5)"},
      {"mask_device", [](Call& c) { c.options.attn_mask = torch::zeros({6, 5}, torch::kMeta); },
       "attention: attn_mask must be on q's device cpu, got meta"},
      {"lengths_dtype", [](Call& c) { c.options.key_lengths = torch::ones({2}, torch::kInt); },
       "attention: key_lengths must have dtype Long, got Int"},
      {"lengths_shape", [](Call& c) { c.options.key_lengths = torch::ones({3}, torch::kLong); },
       "attention: key_lengths must be (B) = (2), got (3)"},
      {"lengths_device",
       [](Call& c) {
         c.options.key_lengths =
             torch::ones({2}, torch::TensorOptions(torch::kMeta).dtype(torch::kLong));
       },
       "attention: key_lengths must be on q's device cpu, got meta"},
      {"lengths_negative",
       [](Call& c) { c.options.key_lengths = torch::tensor({5, -1}, torch::kLong); },
       "attention: key_lengths must be between 0 and M = 5, got -1 at index 1"},
      {"lengths_too_long",
       [](Call& c) { c.options.key_lengths = torch::tensor({6, 0}, torch::kLong); },
       "attention: key_lengths must be between 0 and M = 5, got 6 at index 0"},
      {"dropout_of_everything", [](Call& c) { c.options.dropout_p = 1.0; },
       "attention: dropout_p must be in [0, 1), got 1"},
      {"dropout_negative", [](Call& c) { c.options.dropout_p = -0.5; },
       "attention: dropout_p must be in [0, 1), got -0.5"},
      {"dropout_nan", [nan](Call& c) { c.options.dropout_p = nan; },
       "attention: dropout_p must be in [0, 1), got nan"},
      {"scale_nan", [nan](Call& c) { c.options.scale = nan; },
       "attention: scale must be finite, got nan"},
  };
}

class AttentionChecks : public ::testing::TestWithParam<WrongCall> {};

TEST_P(AttentionChecks, K4NameTheArgument) {
  Call call;
  GetParam().spoil(call);
  EXPECT_EQ(refusal([&] { ops::attention(call.q, call.k, call.v, call.metric, call.options); }),
            GetParam().message);
  EXPECT_EQ(
      refusal([&] { ops::attention_composite(call.q, call.k, call.v, call.metric, call.options); }),
      GetParam().message);
}

INSTANTIATE_TEST_SUITE_P(Cases,
                         AttentionChecks,
                         ::testing::ValuesIn(wrong_calls()),
                         [](const auto& test) { return test.param.name; });

TEST(AttentionChecks, AcceptTheUnspoiledCall) {
  const Call call;
  EXPECT_EQ(refusal([&] { ops::attention(call.q, call.k, call.v, call.metric, call.options); }),
            "accepted");
}

TEST(AttentionChecks, RefusedCallsDrawNoSeed) {
  Call call;
  call.k = torch::zeros({2, 2, 5, 7});
  call.options.dropout_p = 0.5;
  call.options.generator = torch::make_generator<at::CPUGeneratorImpl>(1);
  const at::Tensor before = call.options.generator->get_state();
  EXPECT_NE(refusal([&] { ops::attention(call.q, call.k, call.v, call.metric, call.options); }),
            "accepted");
  EXPECT_TRUE(before.equal(call.options.generator->get_state()));
}

TEST(AttentionChecks, SdpaTakesNoDropout) {
  const Call call;
  EXPECT_EQ(
      refusal([&] { ops::attention_via_sdpa(call.q, call.k, call.v, {}, {.dropout_p = 0.5}); }),
      "attention_via_sdpa: dropout_p must be 0, got 0.5");
}

/// What only callers of `torch.ops.elliptical.attention` can get wrong.
std::string op_refusal(const std::optional<at::Tensor>& dropout_seed) {
  const Call call;
  return refusal([&] {
    torch::jit::Stack stack{call.q,        call.k,        call.v,       c10::IValue(),
                            c10::IValue(), c10::IValue(), dropout_seed, false,
                            c10::IValue(), 0.5,           true};
    c10::Dispatcher::singleton().findSchemaOrThrow("elliptical::attention", "").callBoxed(stack);
  });
}

TEST(AttentionChecks, TheOpNeedsASeed) {
  EXPECT_EQ(op_refusal({}), "attention: dropout_seed must be given when dropout_p > 0, got none");
  EXPECT_EQ(op_refusal(torch::zeros({1})),
            "attention: dropout_seed must have dtype Long, got Float");
  EXPECT_EQ(op_refusal(torch::zeros({2}, torch::kLong)),
            "attention: dropout_seed must have one element, got (2)");
  EXPECT_EQ(op_refusal(torch::zeros({1}, torch::kLong)), "accepted");
}

}  // namespace
}  // namespace elliptical::attention_checks_test
