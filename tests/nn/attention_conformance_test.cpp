// SPDX-License-Identifier: MIT
//
// What every variant of the table owes: shapes, causality, padding, gradients, repeatability,
// options that survive printing, a trace that changes nothing. What a variant says that it can not
// do (AttentionAbilities) is not asked of it, but it must refuse it. The variant of a table of our
// own (tests/support/limited_attention.h) shows that one which can do next to nothing fits in.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <set>

#include "elliptical/base/config.h"
#include "elliptical/base/errors.h"
#include "tests/support/attention_stack.h"
#include "tests/support/attention_variants.h"
#include "tests/support/forward_mode.h"
#include "tests/support/gradcheck.h"
#include "tests/support/limited_attention.h"

namespace elliptical::nn::attention_conformance_test {
namespace {

using support::AttentionStack;
using support::AttentionVariant;
using support::wave;

constexpr int64_t B = 2, N = 9, C = 12;
constexpr AttentionShape kTwoSided{.dim = C, .num_heads = 3, .window = N};
constexpr AttentionShape kCausal{.dim = C, .num_heads = 3, .is_causal = true, .window = N};

/// That of a causal model where the variant may stand in one.
AttentionShape shape_of(const AttentionVariant& variant) {
  return variant.can().may_be_causal() ? kCausal : kTwoSided;
}

/// With dropout of probabilities where there are any.
AttentionShape with_dropout(const AttentionVariant& variant) {
  AttentionShape shape = shape_of(variant);
  if (variant.can().drops) shape.dropout = 0.3;
  return shape;
}

/// A stack of the variant, in the kind of model that it may stand in.
AttentionStack stack_of(const AttentionVariant& variant) { return {variant, shape_of(variant)}; }

bool has_metric(const AttentionVariant& variant) {
  return stack_of(variant).layers.back()->labels().contains("metric_estimator");
}

class AttentionConformance : public ::testing::TestWithParam<AttentionVariant> {};

TEST_P(AttentionConformance, KeepsTheShape) {
  const AttentionStack stack = stack_of(GetParam());
  for (const auto& sizes : {std::vector<int64_t>{B, N, C}, {1, 1, C}, {3, 2, C}}) {
    const at::Tensor out = stack.forward(wave(sizes));
    EXPECT_EQ(out.sizes(), at::IntArrayRef(sizes));
    EXPECT_TRUE(out.isfinite().all().item<bool>());
  }
}

TEST_P(AttentionConformance, FutureTokensLeaveThePastBitEqual) {
  if (!GetParam().can().may_be_causal()) {
    EXPECT_THROW(AttentionStack(GetParam(), kCausal), ConfigError);
    return;
  }
  const bool leaks = !GetParam().can().causal;
  const AttentionStack stack(GetParam(), kCausal);
  EXPECT_EQ(stack.layers.back()->labels().at("leaks_future"), LabelValue(leaks));
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
    if (leaks && t == 1 && !GetParam().sums_to_one) continue;
    const bool stays = !leaks || t == 1;
    EXPECT_EQ(at::equal(after.narrow(1, 0, t), before.narrow(1, 0, t)), stays) << "token " << t;
  }
}

TEST_P(AttentionConformance, PaddingChangesNothing) {
  const AttentionStack stack(GetParam(), kTwoSided);
  const at::Tensor lengths = torch::tensor({N, N - 4});
  Pass pass, other;
  pass.key_lengths = other.key_lengths = lengths;
  const at::Tensor x = wave({B, N, C});
  if (!GetParam().can().padding) {
    EXPECT_THROW(stack.forward(x, pass), c10::ValueError);
    return;
  }
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
  AttentionShape small = shape_of(GetParam());
  small.dim = small.window = 4;
  small.num_heads = 2;
  const AttentionStack stack(GetParam(), small, through);
  stack.to(torch::kDouble);
  const at::Tensor x = wave({1, 4, 4}).to(torch::kDouble);
  // Estimators divide by small changes: third derivatives are large, hence the wider tolerance.
  EXPECT_TRUE(support::gradients_match(
      [&](const std::vector<at::Tensor>& in) -> std::vector<at::Tensor> {
        return {stack.forward(in[0])};
      },
      {x}, 1e-6, 1e-6));
}

/// Of a model's weights and tokens, in float, where kernels run otherwise: their reverse mode. A
/// derivative of 0 would not be noticed by anybody.
TEST_P(AttentionConformance, ForwardModeIsReverseModeOrRefused) {
  const AttentionStack stack = stack_of(GetParam());
  const at::Tensor x = wave({B, N, C}), tangent = wave({B, N, C}, 0.4);
  const at::Tensor own = x.clone().requires_grad_();
  const at::Tensor out = stack.forward(own), weights = wave(out.sizes(), 1.3);
  const at::Tensor gradient = torch::autograd::grad({(out * weights).sum()}, {own})[0];
  support::DualValue dual;
  try {
    dual = support::forward_derivative(
        [&](const std::vector<at::Tensor>& in) { return stack.forward(in[0]); }, {x}, {tangent});
  } catch (const c10::Error& error) {
    EXPECT_NE(std::string(error.what()).find("forward"), std::string::npos) << error.what();
    return;
  }
  ASSERT_TRUE(dual.tangent.defined());
  const double forward = (dual.tangent * weights).sum().item<double>();
  const at::Tensor products = gradient * tangent;
  // Some hundred float32 products through three layers.
  EXPECT_NEAR(forward, products.sum().item<double>(),
              1e-4 * std::max(1.0, products.abs().sum().item<double>()));
}

TEST_P(AttentionConformance, EveryParameterLearns) {
  const AttentionStack stack = stack_of(GetParam());
  stack.forward(wave({B, N, C})).square().sum().backward();
  for (const at::Tensor& parameter : stack.parameters()) {
    ASSERT_TRUE(parameter.grad().defined());
    EXPECT_GT(parameter.grad().abs().max().item<double>(), 0.0);
  }
}

TEST_P(AttentionConformance, RepeatsWithTheSameKey) {
  const AttentionStack stack(GetParam(), with_dropout(GetParam()));
  const at::Tensor x = wave({B, N, C});
  const auto run = [&](uint64_t seed) {
    auto pass = Pass::of_training(RandomKey(seed));
    return stack.forward(x, pass);
  };
  const at::Tensor first = run(1);
  torch::rand({5});  // torch's own generator has no say
  EXPECT_TRUE(at::equal(first, run(1)));
  if (GetParam().can().drops) {
    EXPECT_FALSE(at::equal(first, run(2)));
  }
}

TEST_P(AttentionConformance, DropoutIsOffOutsideTraining) {
  const at::Tensor x = wave({B, N, C});
  EXPECT_TRUE(at::equal(AttentionStack(GetParam(), with_dropout(GetParam())).forward(x),
                        stack_of(GetParam()).forward(x)));
  if (!GetParam().can().drops) {
    AttentionShape shape = shape_of(GetParam());
    shape.dropout = 0.3;
    EXPECT_THROW(AttentionStack(GetParam(), shape), ConfigError);
  }
}

TEST_P(AttentionConformance, OptionsSurvivePrinting) {
  ChosenOptions chosen = GetParam().options();
  const std::string text = to_toml(fields_of(chosen));
  const std::vector<OptionsEntry>& choices = GetParam().choices();
  ChosenOptions read(choices, choices.back().name);
  read_recipe_text(text, "printed", fields_of(read));
  EXPECT_EQ(to_toml(fields_of(read)), text);
}

TEST_P(AttentionConformance, TraceChangesNothing) {
  const AttentionStack stack = stack_of(GetParam());
  const at::Tensor x = wave({B, N, C});
  Trace trace;
  Pass pass;
  pass.trace = &trace;
  EXPECT_TRUE(at::equal(stack.forward(x, pass), stack.forward(x)));
  EXPECT_EQ(trace.tensors.count("layers.1.metric"), has_metric(GetParam()) ? 1 : 0);
  EXPECT_EQ(trace.tensors.count("layers.0.metric"), 0) << "the first layer has no metric";
  ASSERT_EQ(trace.tensors.contains("layers.2.attention"), GetParam().can().has_map);
  if (!GetParam().can().has_map) return;
  const at::Tensor map = trace.tensors.at("layers.2.attention");
  EXPECT_EQ(map.sizes(), (at::IntArrayRef{B, 3, N, N}));
  const at::Tensor sums = map.sum(-1);
  if (GetParam().sums_to_one) {
    EXPECT_LE((sums.max() - 1.0).item<double>(), 1e-5);  // float sums of 9 terms
    if (!GetParam().damped) {
      EXPECT_GE((sums.min() - 1.0).item<double>(), -1e-5);
    }
  }
  if (stack.is_causal) {
    EXPECT_EQ(map.triu(1).abs().max().item<double>(), 0.0);
  }
}

TEST_P(AttentionConformance, TraceHoldsWhatIsAskedForAndNothingElse) {
  const AttentionStack stack = stack_of(GetParam());
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
  const AttentionStack stack = stack_of(GetParam());
  Trace kept({Traced::kBranch});
  std::vector<std::pair<int64_t, at::Tensor>> received;
  Trace handed({Traced::kBranch}, [&](int64_t layer, Traced what, const at::Tensor& branch) {
    EXPECT_EQ(what, Traced::kBranch);
    received.emplace_back(layer, branch);
  });
  for (Trace* trace : {&kept, &handed}) {
    Pass pass;
    pass.trace = trace;
    stack.forward(wave({B, N, C}), pass);
  }
  EXPECT_TRUE(handed.tensors.empty());
  ASSERT_EQ(received.size(), 3);
  for (int64_t layer = 0; layer < 3; ++layer) {
    const auto& [of, branch] = received[static_cast<size_t>(layer)];
    EXPECT_EQ(of, layer);
    EXPECT_TRUE(at::equal(branch, kept.tensors.at("layers." + std::to_string(layer) + ".branch")));
  }
}

TEST_P(AttentionConformance, KeptTokensDoNotMissTheOthers) {
  const AttentionStack stack(GetParam(), kTwoSided);
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
  const AttentionStack stack = stack_of(GetParam());
  std::set<std::string> names;
  for (const auto& item : stack.layers[1]->named_parameters()) {
    if (item.key().find("mixer.") != 0) names.insert(item.key());
  }
  std::set<std::string> expected = GetParam().own_parameters;
  expected.insert({"qkv.weight", "proj.weight"});
  EXPECT_EQ(names, expected);
}

INSTANTIATE_TEST_SUITE_P(All,
                         AttentionConformance,
                         ::testing::ValuesIn(support::attention_variants()),
                         support::VariantName{});
INSTANTIATE_TEST_SUITE_P(Limited,
                         AttentionConformance,
                         ::testing::Values(support::limited_attention()),
                         support::VariantName{});

/// An entry with its default options, and what some can not do without in a causal model.
AttentionVariant defaults_of(const AttentionEntry& entry) {
  AttentionVariant variant{.name = entry.name, .attention = entry.name};
  if (entry.can.looks_ahead) variant.assignments = {"lookahead=true"};
  return variant;
}

/// Each thing that the entry says is seen to be so, or seen to be refused.
void expect_truth(const AttentionVariant& variant) {
  SCOPED_TRACE(variant.name);
  const AttentionAbilities& can = variant.entry().can;
  const AttentionStack stack = stack_of(variant);
  const Attention& last = *stack.layers.back();
  const auto outcome = [](const auto& action) -> std::string {
    try {
      action();
    } catch (const ConfigError&) {
      return "no such model";
    } catch (const c10::ValueError&) {
      return "refused";
    }
    return "done";
  };
  EXPECT_FALSE(can.causal && can.looks_ahead);
  EXPECT_EQ(outcome([&] { AttentionStack(variant, kCausal); }),
            can.may_be_causal() ? "done" : "no such model");
  EXPECT_EQ(last.labels().at("leaks_future"), LabelValue(can.looks_ahead));
  EXPECT_EQ(!last.why_no_streaming().has_value(), can.streams);
  Pass padded;
  padded.key_lengths = torch::tensor({N, N - 4});
  const at::Tensor x = wave({B, N, C});
  const auto with_padding = [&] {
    const AttentionStack two_sided(variant, kTwoSided);
    at::Tensor changed = x.clone();
    changed[1].narrow(0, N - 4, 4).zero_();
    EXPECT_TRUE(at::equal(two_sided.forward(x, padded)[1].narrow(0, 0, N - 4),
                          two_sided.forward(changed, padded)[1].narrow(0, 0, N - 4)));
  };
  EXPECT_EQ(outcome(with_padding), can.padding ? "done" : "refused");
  EXPECT_EQ(outcome([&] { stack.forward(wave({1, N + 1, C})); }),
            can.fixed_length ? "refused" : "done");
  Trace trace;
  Pass traced;
  traced.trace = &trace;
  stack.forward(x, traced);
  EXPECT_EQ(trace.tensors.contains("layers.2.attention"), can.has_map);
  AttentionShape dropping = stack.is_causal ? kCausal : kTwoSided;
  dropping.dropout = 0.3;
  EXPECT_EQ(outcome([&] { AttentionStack(variant, dropping); }),
            can.drops ? "done" : "no such model");
}

TEST(AttentionTable, SaysWhatItsVariantsCanDo) {
  for (const AttentionEntry& entry : attention_table()) expect_truth(defaults_of(entry));
  expect_truth(support::limited_attention());
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
