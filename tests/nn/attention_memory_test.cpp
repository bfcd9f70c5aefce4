// SPDX-License-Identifier: MIT
//
// Forward and backward of a layer, causal where it can be, allocate memory linear in the number of
// tokens where the table says so: four times the tokens, about four times the peak. An N x N map makes it sixteen, as the last test shows.
// Every allocation of the program is counted.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "elliptical/base/config.h"
#include "elliptical/base/name_table.h"
#include "elliptical/nn/attention/attention.h"
#include "tests/kernels/allocation_count.h"
#include "tests/support/attention_variants.h"
#include "tests/support/one_thread.h"

namespace elliptical::nn {
namespace {

constexpr int64_t C = 32, H = 2;

/// Bytes at the peak of one pass over N tokens, beside what was there before.
double peak_bytes(const ChosenOptions& options, int64_t N) {
  const bool is_causal = find_entry(attention_table(), options.name())->can.may_be_causal();
  const AttentionShape shape{
      .dim = C, .num_heads = H, .is_causal = is_causal, .layer = 1, .num_layers = 2, .window = N};
  const auto layer = make_attention(options, shape);
  {
    const torch::NoGradGuard no_grad;
    for (at::Tensor& parameter : layer->parameters()) {
      if (parameter.dim() == 2) parameter.normal_(0.0, 0.1);
    }
  }
  const at::Tensor x = torch::randn({1, N, C}).requires_grad_();
  Pass pass;
  pass.is_causal = is_causal;
  pass.layer = 1;
  pass.previous_q = torch::randn({1, H, N, C / H});
  pass.previous_v = torch::randn({1, H, N, C / H});
  const size_t before = kernels::test::allocated_bytes();
  kernels::test::reset_peak();
  layer->forward(x, pass).sum().backward();
  return static_cast<double>(kernels::test::peak_allocated_bytes() - before);
}

/// The peak of 4 N tokens divided by that of N.
double growth(const ChosenOptions& options, int64_t N) {
  peak_bytes(options, 256);  // what is allocated once
  const double small = peak_bytes(options, N), large = peak_bytes(options, 4 * N);
  const auto tensor = static_cast<double>(N * C) * sizeof(float);
  EXPECT_GT(small, 4 * tensor) << "the count does not see q, k, v and out";
  ::testing::Test::RecordProperty("peak_bytes", std::to_string(large));
  ::testing::Test::RecordProperty("growth", std::to_string(large / small));
  return large / small;
}

class LayerMemory : public ::testing::TestWithParam<const char*> {};

TEST_P(LayerMemory, IsWhatTheTableSays) {
  const AttentionEntry& entry = *find_entry(attention_table(), GetParam());
  ChosenOptions options(attention_choices(), entry.name);
  if (entry.can.looks_ahead) apply_overrides({"lookahead=true"}, fields_of(options));
  if (entry.can.linear_memory) {
    const double found = growth(options, 1024);
    // Scratch memory per thread does not grow, so less than four times is possible.
    EXPECT_GT(found, 2.0);
    EXPECT_LT(found, 4.5);
  } else {
    // A byte or more for each pair of tokens, of which there are sixteen times as many, beside what
    // grows four times.
    const support::OneThread one_thread;  // scratch memory of each would hide a part of the growth
    EXPECT_GT(growth(options, 512), 5.0);
  }
}

std::vector<const char*> all_variants() {
  std::vector<const char*> names;
  for (const AttentionEntry& entry : attention_table()) names.push_back(entry.name);
  return names;
}

INSTANTIATE_TEST_SUITE_P(All,
                         LayerMemory,
                         ::testing::ValuesIn(all_variants()),
                         [](const auto& one) { return std::string(one.param); });

TEST(LayerMemoryControl, AMapIsSeenToBeQuadratic) {
  const support::OneThread one_thread;  // scratch memory of each would hide a part of the growth
  const support::AttentionVariant hard{
      .name = "hard", .attention = "mgk", .assignments = {"mixture=hard"}};
  EXPECT_GT(growth(hard.options(), 512), 12.0);
}

TEST(LayerMemoryOfMom, IsLinearBesideAByteForEachQueryAndKey) {
  constexpr int64_t N = 1024;
  const ChosenOptions options(attention_choices(), "mom");
  peak_bytes(options, 256);  // what is allocated once
  const double small = peak_bytes(options, N) - N * N, large = peak_bytes(options, 4 * N);
  EXPECT_GT(small, 0.0);
  EXPECT_LT(large - 16 * N * N, 4.5 * small);
}

}  // namespace
}  // namespace elliptical::nn
