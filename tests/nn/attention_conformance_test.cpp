// SPDX-License-Identifier: MIT
//
// What every variant of the table owes: shapes, causality, padding, gradients, repeatability,
// options that survive printing, a trace that changes nothing.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <algorithm>
#include <set>

#include "elliptical/base/config.h"
#include "tests/support/attention_stack.h"
#include "tests/support/attention_variants.h"
#include "tests/support/gradcheck.h"

namespace elliptical::nn::attention_conformance_test {
namespace {

using support::AttentionStack;
using support::AttentionVariant;
using support::wave;

constexpr int64_t B = 2, N = 9, C = 12;
constexpr AttentionShape kCausal{.dim = C, .num_heads = 3, .is_causal = true};
constexpr AttentionShape kTwoSided{.dim = C, .num_heads = 3};

bool has_metric(const AttentionVariant& variant) {
  return variant.attention == "elliptical" ||
         std::count(variant.assignments.begin(), variant.assignments.end(), "distance=elliptical");
}

/// With dropout of probabilities where there are any.
AttentionShape with_dropout(const AttentionVariant& variant) {
  AttentionShape shape = kCausal;
  if (variant.drops) shape.dropout = 0.3;
  return shape;
}

class AttentionConformance : public ::testing::TestWithParam<AttentionVariant> {};

TEST_P(AttentionConformance, KeepsTheShape) {
  const AttentionStack stack(GetParam().options(), kCausal);
  for (const auto& sizes : {std::vector<int64_t>{B, N, C}, {1, 1, C}, {3, 2, C}}) {
    const at::Tensor out = stack.forward(wave(sizes));
    EXPECT_EQ(out.sizes(), at::IntArrayRef(sizes));
    EXPECT_TRUE(out.isfinite().all().item<bool>());
  }
}

TEST_P(AttentionConformance, FutureTokensLeaveThePastBitEqual) {
  const AttentionStack stack(GetParam().options(), kCausal);
  const at::Tensor x = wave({B, N, C});
  const at::Tensor before = stack.forward(x);
  for (const int64_t t : {int64_t{1}, N / 2, N - 1}) {
    at::Tensor changed = x.clone();
    changed.narrow(1, t, N - t).add_(1.5);
    const at::Tensor after = stack.forward(changed);
    EXPECT_FALSE(at::equal(after.select(1, t), before.select(1, t)));
    // The released form is known to see the future; that it does is documented here. Token 0 sees
    // only itself, whatever the metric; its weight is then 1, where weights sum to 1, and may be
    // anything where they do not.
    if (GetParam().leaks && t == 1 && !GetParam().sums_to_one) continue;
    const bool stays = !GetParam().leaks || t == 1;
    EXPECT_EQ(at::equal(after.narrow(1, 0, t), before.narrow(1, 0, t)), stays) << "token " << t;
  }
}

TEST_P(AttentionConformance, PaddingChangesNothing) {
  const AttentionStack stack(GetParam().options(), kTwoSided);
  const at::Tensor lengths = torch::tensor({N, N - 4});
  Pass pass, other;
  pass.key_lengths = other.key_lengths = lengths;
  const at::Tensor x = wave({B, N, C});
  at::Tensor changed = x.clone();
  changed[1].narrow(0, N - 4, 4).mul_(-3.0);
  const at::Tensor out = stack.forward(x, pass), out_changed = stack.forward(changed, other);
  EXPECT_TRUE(at::equal(out[0], out_changed[0]));
  EXPECT_TRUE(at::equal(out[1].narrow(0, 0, N - 4), out_changed[1].narrow(0, 0, N - 4)));
}

TEST_P(AttentionConformance, GradientsMatchDifferences) {
  // Through the metric, where there is one: a detached metric is constant only to autograd.
  std::vector<std::string> through = GetParam().exact_gradient;
  if (has_metric(GetParam())) through.push_back("metric_gradient=through");
  const AttentionStack stack(GetParam().options(through),
                             {.dim = 4, .num_heads = 2, .is_causal = true});
  stack.to(torch::kDouble);
  const at::Tensor x = wave({1, 4, 4}).to(torch::kDouble);
  // Estimators divide by small changes: third derivatives are large, hence the wider tolerance.
  EXPECT_TRUE(support::gradients_match(
      [&](const std::vector<at::Tensor>& in) -> std::vector<at::Tensor> {
        return {stack.forward(in[0])};
      },
      {x}, 1e-6, 1e-6));
}

TEST_P(AttentionConformance, EveryParameterLearns) {
  const AttentionStack stack(GetParam().options(), kCausal);
  stack.forward(wave({B, N, C})).square().sum().backward();
  for (const at::Tensor& parameter : stack.parameters()) {
    ASSERT_TRUE(parameter.grad().defined());
    EXPECT_GT(parameter.grad().abs().max().item<double>(), 0.0);
  }
}

TEST_P(AttentionConformance, RepeatsWithTheSameKey) {
  const AttentionStack stack(GetParam().options(), with_dropout(GetParam()));
  const at::Tensor x = wave({B, N, C});
  const auto run = [&](uint64_t seed) {
    Pass pass;
    pass.training = true;
    pass.random = RandomKey(seed);
    return stack.forward(x, pass);
  };
  const at::Tensor first = run(1);
  torch::rand({5});  // torch's own generator has no say
  EXPECT_TRUE(at::equal(first, run(1)));
  if (GetParam().drops) {
    EXPECT_FALSE(at::equal(first, run(2)));
  }
}

TEST_P(AttentionConformance, DropoutIsOffOutsideTraining) {
  const at::Tensor x = wave({B, N, C});
  EXPECT_TRUE(at::equal(AttentionStack(GetParam().options(), with_dropout(GetParam())).forward(x),
                        AttentionStack(GetParam().options(), kCausal).forward(x)));
}

TEST_P(AttentionConformance, OptionsSurvivePrinting) {
  ChosenOptions chosen = GetParam().options();
  const std::string text = to_toml(fields_of(chosen));
  ChosenOptions read(attention_choices(), "softmax");
  read_recipe_text(text, "printed", fields_of(read));
  EXPECT_EQ(to_toml(fields_of(read)), text);
}

TEST_P(AttentionConformance, TraceChangesNothing) {
  const AttentionStack stack(GetParam().options(), kCausal);
  const at::Tensor x = wave({B, N, C});
  Trace trace;
  Pass pass;
  pass.trace = &trace;
  EXPECT_TRUE(at::equal(stack.forward(x, pass), stack.forward(x)));
  const at::Tensor map = trace.tensors.at("layers.2.attention");
  EXPECT_EQ(map.sizes(), (at::IntArrayRef{B, 3, N, N}));
  const at::Tensor sums = map.sum(-1);
  if (GetParam().sums_to_one) {
    EXPECT_LE((sums.max() - 1.0).item<double>(), 1e-5);  // float sums of 9 terms
    if (!GetParam().damped) {
      EXPECT_GE((sums.min() - 1.0).item<double>(), -1e-5);
    }
  }
  EXPECT_EQ(map.triu(1).abs().max().item<double>(), 0.0);
  EXPECT_EQ(trace.tensors.count("layers.1.metric"), has_metric(GetParam()) ? 1 : 0);
  EXPECT_EQ(trace.tensors.count("layers.0.metric"), 0) << "the first layer has no metric";
}

TEST_P(AttentionConformance, TraceHoldsWhatIsAskedForAndNothingElse) {
  const AttentionStack stack(GetParam().options(), kCausal);
  const at::Tensor x = wave({B, N, C});
  Trace trace({Traced::kBranch, Traced::kProjectedBranch});
  Pass pass;
  pass.trace = &trace;
  const at::Tensor out = stack.forward(x, pass);
  EXPECT_EQ(trace.tensors.size(), 6) << "two for each layer";
  for (const std::string layer : {"layers.0.", "layers.1.", "layers.2."}) {
    EXPECT_EQ(trace.tensors.at(layer + "branch").sizes(), (at::IntArrayRef{B, N, C}));
    EXPECT_FALSE(trace.tensors.at(layer + "branch").requires_grad());
  }
  // The stack adds the projected branches to its input: nothing else is between them.
  const at::Tensor sum = x + trace.tensors.at("layers.0.projected_branch") +
                         trace.tensors.at("layers.1.projected_branch") +
                         trace.tensors.at("layers.2.projected_branch");
  EXPECT_TRUE(at::equal(sum, out));
}

TEST_P(AttentionConformance, ATraceThatHandsOnKeepsNothing) {
  const AttentionStack stack(GetParam().options(), kCausal);
  Trace kept;
  std::vector<std::pair<int64_t, at::Tensor>> received;
  Trace handed({Traced::kMap}, [&](int64_t layer, Traced what, const at::Tensor& map) {
    EXPECT_EQ(what, Traced::kMap);
    received.emplace_back(layer, map);
  });
  for (Trace* trace : {&kept, &handed}) {
    Pass pass;
    pass.trace = trace;
    stack.forward(wave({B, N, C}), pass);
  }
  EXPECT_TRUE(handed.tensors.empty());
  ASSERT_EQ(received.size(), 3);
  for (int64_t layer = 0; layer < 3; ++layer) {
    const auto& [of, map] = received[static_cast<size_t>(layer)];
    EXPECT_EQ(of, layer);
    EXPECT_TRUE(at::equal(map, kept.tensors.at("layers." + std::to_string(layer) + ".attention")));
  }
}

TEST_P(AttentionConformance, KeptTokensDoNotMissTheOthers) {
  const AttentionStack stack(GetParam().options(), kTwoSided);
  const auto last_layer = [&](std::optional<int64_t> num_kept) {
    Pass pass;
    at::Tensor x = wave({B, N, C});
    for (const auto& layer : {stack.layers[0], stack.layers[1]}) {
      x = x + layer->forward(x, pass);
      ++pass.layer;
    }
    pass.num_kept = num_kept;
    return stack.layers[2]->forward(x, pass);
  };
  const at::Tensor all = last_layer(std::nullopt), kept = last_layer(2);
  ASSERT_GE(kept.size(1), 2);
  EXPECT_LE((kept.narrow(1, 0, 2) - all.narrow(1, 0, 2)).abs().max().item<double>(),
            1e-6 * all.abs().max().item<double>());  // other tiles, other rounding
}

TEST_P(AttentionConformance, ParameterNamesAreThePublishedOnes) {
  const AttentionStack stack(GetParam().options(), kCausal);
  std::set<std::string> names;
  for (const auto& item : stack.layers[1]->named_parameters()) {
    if (item.key().find("mixer.") != 0) names.insert(item.key());
  }
  if (names.erase("second_keys.weight") > 0) {
    EXPECT_EQ(GetParam().attention, "mgk");
  }
  EXPECT_EQ(names, (std::set<std::string>{"qkv.weight", "proj.weight"}));
}

INSTANTIATE_TEST_SUITE_P(All,
                         AttentionConformance,
                         ::testing::ValuesIn(support::attention_variants()),
                         support::VariantName{});

/// A variant of the table with its default options, and what some can not do without.
ChosenOptions defaults_of(const AttentionEntry& entry, int64_t window) {
  ChosenOptions chosen(attention_choices(), entry.name);
  std::vector<std::string> needed;
  if (entry.can.fixed_length) needed.push_back("window=" + std::to_string(window));
  if (entry.can.looks_ahead) needed.emplace_back("lookahead=true");
  apply_overrides(needed, fields_of(chosen));
  return chosen;
}

TEST(AttentionTable, SaysWhatItsVariantsCanDo) {
  for (const AttentionEntry& entry : attention_table()) {
    const AttentionStack stack(defaults_of(entry, N), kCausal);
    const Attention& last = *stack.layers.back();
    EXPECT_EQ(!last.why_no_streaming().has_value(), entry.can.streams) << entry.name;
    EXPECT_EQ(last.labels().at("leaks_future"), LabelValue(!entry.can.causal)) << entry.name;
    EXPECT_FALSE(entry.can.causal && entry.can.looks_ahead) << entry.name;

    Trace trace;
    Pass pass;
    pass.trace = &trace;
    stack.forward(wave({B, N, C}), pass);
    EXPECT_EQ(trace.tensors.contains("layers.2.attention"), entry.can.has_map) << entry.name;

    const auto longer = [&] { return stack.forward(wave({1, N + 1, C})); };
    if (entry.can.fixed_length) {
      EXPECT_THROW(longer(), c10::ValueError) << entry.name;
    } else {
      EXPECT_EQ(longer().size(1), N + 1) << entry.name;
    }
  }
}

TEST(AttentionTable, IsSortedAndDescribed) {
  std::string before;
  for (const AttentionEntry& entry : attention_table()) {
    EXPECT_LT(before, entry.name);
    EXPECT_GT(std::string(entry.description).size(), 10u);
    before = entry.name;
  }
  std::set<std::string> covered;
  for (const AttentionVariant& variant : support::attention_variants()) {
    covered.insert(variant.attention);
  }
  EXPECT_EQ(covered.size(), attention_table().size()) << "a variant has no conformance case";
}

}  // namespace
}  // namespace elliptical::nn::attention_conformance_test
