// SPDX-License-Identifier: MIT
//
// Perplexity by every method, on models whose perplexity is known otherwise.
#include "elliptical/tasks/lm_evaluation.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cmath>
#include <set>

#include "elliptical/base/config.h"
#include "elliptical/base/errors.h"
#include "tests/support/small_task.h"

namespace elliptical::tasks {
namespace {

using support::AttentionVariant;
using support::evaluate;
using support::metric_value;
using support::small_task_options;

at::Tensor parameter(Task& task, const std::string& name) {
  return task.model().named_parameters()[name];
}

/// A model that gives each word a probability whatever came before: only its last bias counts.
void ignore_context(LanguageModelTask& task) {
  const torch::NoGradGuard no_grad;
  parameter(task, "embed.weight").zero_();
}

LanguageModelOptions without_clusters() {
  LanguageModelOptions options = small_task_options();
  options.model.cutoffs = {};
  return options;
}

const Scores::Sum& nll_of(const Scores& scores, const std::string& targets) {
  return scores.sums.at({"nll", {{"targets", targets}}});
}

double relative(double a, double b) { return std::abs(a - b) / std::abs(b); }

std::string refusal(LanguageModelTask& task, LmEvalOptions options) {
  try {
    task.eval_set(options);
  } catch (const std::exception& error) {
    return error.what();
  }
  return "";
}

LmEvalOptions method(const std::string& name) {
  LmEvalOptions options;
  options.method = name;
  return options;
}

TEST(LmEvaluation, UniformModelHasThePerplexityOfItsVocabulary) {  // LM-2
  LanguageModelTask task(without_clusters(), 1);
  ignore_context(task);
  const auto words = static_cast<double>(task.corpus().vocabulary().size());
  for (const char* name : {"block", "sliding", "stream"}) {
    EXPECT_LE(relative(metric_value(task, evaluate(task, method(name))), words), 1e-6) << name;
  }
}

TEST(LmEvaluation, WithoutContextSlidingIsTheMeanOverTokens) {  // LM-3
  LanguageModelTask task(without_clusters(), 1);
  ignore_context(task);
  const at::Tensor bias = parameter(task, "softmax.bias");
  {
    const torch::NoGradGuard no_grad;
    bias.copy_(torch::arange(bias.numel()).mul(0.7).sin());
  }
  const at::Tensor log_p = bias.detach().to(torch::kDouble).log_softmax(0);
  const std::vector<int32_t>& stream = task.corpus().stream(data::Split::kValid);
  double nll = 0.0;
  for (size_t i = 1; i < stream.size(); ++i) nll -= log_p[stream[i]].item<double>();
  const Scores scores = evaluate(task, method("sliding"));
  EXPECT_EQ(nll_of(scores, "all").count, static_cast<int64_t>(stream.size()) - 1);
  EXPECT_LE(relative(nll_of(scores, "all").total, nll), 1e-6);
}

TEST(LmEvaluation, SlidingIsExactForShortMemory) {  // LM-4
  // Without attention and with positions counted from the end, the last token is all that counts.
  LanguageModelOptions options = small_task_options({.attention = "softmax"});
  options.model.positions = nn::Positions::kReverse;
  LanguageModelTask task(options, 1);
  {
    const torch::NoGradGuard no_grad;
    parameter(task, "blocks.0.attn.proj.weight").zero_();
    parameter(task, "blocks.1.attn.proj.weight").zero_();
  }
  Dump sliding, exact;
  evaluate(task, method("sliding"), &sliding);
  LmEvalOptions one_token = method("sliding");
  one_token.window = 1;
  evaluate(task, one_token, &exact);
  const auto after_first_window = [](const Dump& dump) {
    const at::Tensor all = at::cat(dump.at("log_probability"));
    return all.narrow(0, 8, all.numel() - 8);
  };
  EXPECT_LE((after_first_window(sliding) - after_first_window(exact)).abs().max().item<double>(),
            1e-5);
}

TEST(LmEvaluation, BatchedWindowsAreTheSame) {  // LM-7
  LanguageModelTask task(small_task_options(), 1);
  LmEvalOptions alone = method("sliding");
  alone.batch_size = 1;
  const double batched = metric_value(task, evaluate(task, method("sliding")));
  // Products of other sizes may sum in another order.
  EXPECT_LE(relative(metric_value(task, evaluate(task, alone)), batched), 1e-6);
}

TEST(LmEvaluation, StrideOfAWindowIsBlockOfOneColumn) {
  LanguageModelTask task(small_task_options(), 1);
  LmEvalOptions sliding = method("sliding"), block = method("block");
  sliding.stride = 8;
  block.columns = 1;
  Dump a, b;
  evaluate(task, sliding, &a);
  evaluate(task, block, &b);
  const at::Tensor one = at::cat(a.at("log_probability")), other = at::cat(b.at("log_probability"));
  ASSERT_EQ(one.numel(), other.numel());
  // But for the last window, which reaches back for full context.
  const int64_t count = (one.numel() / 8) * 8;
  EXPECT_LE((one - other).narrow(0, 0, count).abs().max().item<double>(), 1e-5);
}

/// -log p of each target but the first token, window by window, as the definition has it: the first
/// window scores all of its targets, each later one its last.
std::vector<double> nll_by_windows(LanguageModelTask& task,
                                   int64_t window,
                                   std::optional<ops::MetricScope> scope) {
  const at::NoGradGuard no_grad;
  const support::OneThread one_thread;
  const std::vector<int32_t>& stream = task.corpus().stream(data::Split::kValid);
  const auto tokens = [&](size_t begin, int64_t count) {
    const auto first = stream.begin() + static_cast<int64_t>(begin);
    return at::tensor(std::vector<int64_t>(first, first + count));
  };
  std::vector<double> result;
  for (size_t begin = 0; begin + static_cast<size_t>(window) < stream.size(); ++begin) {
    nn::Pass pass;
    pass.metric_scope = scope;
    const at::Tensor hidden = task.lm().forward(tokens(begin, window).unsqueeze(0), pass)[0];
    const at::Tensor nll = task.lm().nll(hidden, tokens(begin + 1, window));
    for (int64_t n = begin == 0 ? 0 : window - 1; n < window; ++n) {
      result.push_back(nll[n].item<double>());
    }
  }
  return result;
}

class LmSlidingEvaluation : public ::testing::TestWithParam<AttentionVariant> {};

TEST_P(LmSlidingEvaluation, EqualsALoopOverWindows) {
  LanguageModelTask task(small_task_options(GetParam()), 1);
  std::vector<std::optional<ops::MetricScope>> scopes = {std::nullopt};
  if (task.labels().contains("metric_scope")) {
    scopes.emplace_back(ops::MetricScope::kPrefix);
    scopes.emplace_back(ops::MetricScope::kSequence);
  }
  for (const auto& scope : scopes) {
    LmEvalOptions options = method("sliding");
    options.metric_scope = scope;
    Dump dump;
    evaluate(task, options, &dump);
    const at::Tensor expected = at::tensor(nll_by_windows(task, 8, scope), at::kDouble);
    const at::Tensor actual = -at::cat(dump.at("log_probability"));
    ASSERT_EQ(actual.sizes(), expected.sizes());
    // Windows that are computed together may sum in another order, in float, of numbers near 5.
    // Variants that share something over a batch have them one by one.
    EXPECT_LE((actual - expected).abs().max().item<double>(), 2e-5);
  }
}

INSTANTIATE_TEST_SUITE_P(All,
                         LmSlidingEvaluation,
                         ::testing::ValuesIn(support::causal_attention_variants()),
                         support::VariantName{});

TEST(LmEvaluation, CostOfASlidingWindowIsKnownBeforehand) {
  LanguageModelTask task(small_task_options(), 1);
  LmEvalOptions options = method("sliding");
  const int64_t T = static_cast<int64_t>(task.corpus().stream(data::Split::kValid).size());
  const std::string read = std::to_string(8 * (T - 8)), all = std::to_string(T);
  EXPECT_EQ(task.eval_set(options)->cost(),
            "sliding window: " + std::to_string(T - 8) + " windows of 8 tokens, " + read +
                " tokens are read to score " + std::to_string(T - 1) + " (--method block reads " +
                all + ")");
  options = method("block");
  EXPECT_EQ(task.eval_set(options)->cost(), "");
}

class LmStreamEvaluation : public ::testing::TestWithParam<AttentionVariant> {};

TEST_P(LmStreamEvaluation, EqualsBlock) {
  LanguageModelTask task(small_task_options(GetParam()), 1);
  if (!GetParam().can().streams) {
    EXPECT_EQ(refusal(task, method("stream")),
              "stream: this model can not read token by token: " + *task.lm().why_no_streaming());
    return;
  }
  const double block = metric_value(task, evaluate(task, method("block")));
  const double stream = metric_value(task, evaluate(task, method("stream")));
  EXPECT_LE(relative(stream, block), 1e-5);
}

INSTANTIATE_TEST_SUITE_P(All,
                         LmStreamEvaluation,
                         ::testing::ValuesIn(support::causal_attention_variants()),
                         support::VariantName{});

// The windows are those of `block`, so what the released code does to a random metric is, too.
TEST(LmEvaluation, AStreamOfPublishedDamageEqualsBlock) {
  LanguageModelTask task(
      small_task_options({.attention = "elliptical", .assignments = {"metric.estimator=random"}}),
      1);
  LmEvalOptions block = method("block"), stream = method("stream");
  block.swap_rate = stream.swap_rate = 0.2;
  const double strict = metric_value(task, evaluate(task, block));
  block.swap_profile = stream.swap_profile = data::SwapProfile::kPublished;
  const double published = metric_value(task, evaluate(task, block));
  EXPECT_NE(published, strict);
  EXPECT_LE(relative(metric_value(task, evaluate(task, stream)), published), 1e-5);
}

TEST(LmEvaluation, MetricScopeCanBeOverridden) {
  LanguageModelTask task(small_task_options(), 1);
  LmEvalOptions sequence, prefix;
  sequence.metric_scope = ops::MetricScope::kSequence;
  prefix.metric_scope = ops::MetricScope::kPrefix;
  const double trained = metric_value(task, evaluate(task, {}));
  EXPECT_EQ(metric_value(task, evaluate(task, prefix)), trained);
  EXPECT_NE(metric_value(task, evaluate(task, sequence)), trained);
  EXPECT_TRUE(std::get<bool>(task.eval_set(sequence)->labels().at("leaks_future")));
  EXPECT_FALSE(std::get<bool>(task.eval_set(prefix)->labels().at("leaks_future")));
}

TEST(LmEvaluation, SwappedAndCleanTargetsAddUp) {
  LanguageModelTask task(small_task_options(), 1);
  LmEvalOptions swap;
  swap.swap_rate = 0.1;
  Dump dump;
  const Scores scores = evaluate(task, swap, &dump);
  const auto& all = nll_of(scores, "all");
  const auto& swapped = nll_of(scores, "swapped");
  const auto& clean = nll_of(scores, "clean");
  EXPECT_GT(swapped.count, 0);
  EXPECT_EQ(all.count, swapped.count + clean.count);
  EXPECT_NEAR(all.total, swapped.total + clean.total, 1e-9 * all.total);
  EXPECT_GT(metric_value(task, scores, "perplexity_swapped_targets"), 0.0);
  EXPECT_GT(metric_value(task, scores, "perplexity_clean_targets"), 0.0);
  // Without damage there is nothing to split.
  EXPECT_EQ(metric_value(task, evaluate(task, {}), "perplexity_clean_targets"), -1.0);

  const at::Tensor flags = at::cat(dump.at("swapped"));
  EXPECT_EQ(flags.sum().item<int64_t>(), swapped.count);
  EXPECT_NEAR(-at::cat(dump.at("log_probability")).sum().item<double>(), all.total,
              1e-9 * all.total);
  const at::Tensor targets = at::cat(dump.at("target"));
  // AAA is no word of this language: swapped targets are <unk>.
  EXPECT_TRUE(targets.masked_select(flags).eq(task.corpus().vocabulary().unk()).all().item<bool>());
  const auto labels = task.eval_set(swap)->labels();
  EXPECT_EQ(std::get<std::string>(labels.at("perturbation")), "word_swap");
  EXPECT_GT(std::get<double>(labels.at("swap_word_rate")), 0.0);
  EXPECT_FALSE(std::get<bool>(labels.at("swap_word_known")));
}

TEST(LmEvaluation, BlocksAddUpToTheWhole) {
  LanguageModelTask task(small_task_options(), 1);
  LmEvalOptions options;
  options.swap_rate = 0.1;
  options.blocks = 5;
  const Scores scores = evaluate(task, options);
  for (const char* targets : {"all", "swapped", "clean"}) {
    Scores::Sum sum;
    std::set<int64_t> blocks;
    for (const Record& record : task.metrics(scores)) {
      if (record.metric != "block_nll" || record.labels.at("targets") != LabelValue(targets)) {
        continue;
      }
      blocks.insert(std::get<int64_t>(record.labels.at("block")));
      sum.total += record.value * static_cast<double>(record.count);
      sum.count += record.count;
    }
    EXPECT_EQ(blocks, (std::set<int64_t>{0, 1, 2, 3, 4})) << targets;
    EXPECT_EQ(sum.count, nll_of(scores, targets).count);
    EXPECT_NEAR(sum.total, nll_of(scores, targets).total, 1e-9 * sum.total);
  }
}

/// The record of that name whose labels hold these.
double value_of(const std::vector<Record>& records,
                const std::string& metric,
                const Scores::Labels& labels) {
  for (const Record& record : records) {
    if (record.metric == metric && record.labels == labels) return record.value;
  }
  return -1.0;
}

TEST(LmEvaluation, MetricIsRecordedPerHeadAndCoordinate) {
  const LanguageModelOptions model = small_task_options();
  LanguageModelTask task(model, 1);
  LmEvalOptions options;
  options.metric_profile = true;
  const std::vector<Record> records = task.metrics(evaluate(task, options));
  const int64_t D = model.model.dim / model.model.num_heads;
  double mean = 0;
  for (int64_t head = 0; head < model.model.num_heads; ++head) {
    const Scores::Labels labels = {{"head", head}, {"layer", int64_t{1}}};
    double profile = 0;
    for (int64_t i = 0; i < D; ++i) {
      Scores::Labels coordinate = labels;
      coordinate["coordinate"] = i;
      const double value = value_of(records, "metric_profile", coordinate);
      EXPECT_GT(value, 0.0);
      EXPECT_LE(value, 1.0) << "rows are divided by their maximum";
      profile += value / static_cast<double>(D);
    }
    EXPECT_NEAR(value_of(records, "metric_head_mean", labels), profile, 1e-12);
    EXPECT_GT(value_of(records, "metric_head_anisotropy", labels), 0.0);
    mean += profile / static_cast<double>(model.model.num_heads);
  }
  EXPECT_NEAR(value_of(records, "metric_mean", {}), mean, 1e-12);
}

TEST(LmEvaluation, MeanOfAConstantMetricIsItsValue) {
  LanguageModelTask task(
      small_task_options({.attention = "elliptical",
                          .assignments = {"metric.estimator=matched", "metric.value=0.625"}}),
      1);
  const std::vector<Record> records = task.metrics(evaluate(task, {}));
  EXPECT_EQ(value_of(records, "metric_mean", {}), 0.625);
  EXPECT_EQ(
      value_of(records, "metric_head_anisotropy", {{"head", int64_t{1}}, {"layer", int64_t{1}}}),
      0.0);
  LanguageModelTask plain(small_task_options({.attention = "softmax"}), 1);
  EXPECT_EQ(value_of(plain.metrics(evaluate(plain, {})), "metric_mean", {}), -1.0);
}

TEST(LmEvaluation, SnapshotShowsWhatTheHeadsDo) {
  const LanguageModelOptions model = small_task_options();
  LanguageModelTask task(model, 1);
  LmEvalOptions options;
  const auto snapshot = task.snapshot(options);
  ASSERT_TRUE(snapshot);
  std::map<std::string, at::Tensor> tensors(snapshot->tensors.begin(), snapshot->tensors.end());
  const int64_t H = model.model.num_heads, N = model.model.window, D = model.model.dim / H;
  EXPECT_EQ(tensors.at("tokens").sizes(), at::IntArrayRef({N}));
  EXPECT_EQ(tensors.at("layers.1.attention").sizes(), at::IntArrayRef({H, N, N}));
  EXPECT_EQ(tensors.at("layers.1.metric").sizes(), at::IntArrayRef({H, N, D}));
  EXPECT_EQ(tensors.at("layers.0.keys").sizes(), at::IntArrayRef({H, N, D}));
  EXPECT_EQ(tensors.count("layers.0.metric"), 0);
  EXPECT_EQ(snapshot->metadata.at("split"), "valid");
  EXPECT_EQ(snapshot->metadata.at("words").front(), '[');
}

TEST(LmEvaluation, DamageIsTheSameForEveryModel) {
  LanguageModelTask one(small_task_options(), 1);
  LanguageModelTask other(small_task_options({.attention = "softmax"}), 2);
  LmEvalOptions swap;
  swap.swap_rate = 0.1;
  const auto a = one.eval_set(swap), b = other.eval_set(swap);
  ASSERT_EQ(a->size(), b->size());
  for (int64_t i = 0; i < a->size(); ++i) {
    EXPECT_TRUE(at::equal(a->get(i).input, b->get(i).input));
  }
}

TEST(LmEvaluation, DumpHasEveryTargetOnce) {
  LanguageModelTask task(small_task_options(), 1);
  Dump dump;
  evaluate(task, method("sliding"), &dump);
  const at::Tensor places = at::cat(dump.at("position"));
  const auto size = static_cast<int64_t>(task.corpus().stream(data::Split::kValid).size());
  EXPECT_TRUE(at::equal(places, torch::arange(1, size)));
}

TEST(LmEvaluation, EveryOptionHasAnEffect) {
  LanguageModelTask task(small_task_options(), 1);
  const std::vector<std::pair<std::vector<std::string>, std::string>> changes{
      {{}, "split=test"},
      {{}, "method=sliding"},
      {{}, "window=5"},
      {{}, "columns=3"},
      {{"method=sliding"}, "stride=4"},
      {{}, "metric_scope=sequence"},
      {{}, "swap_rate=0.1"},
      {{"swap_rate=0.1"}, "swap_seed=2"},
      {{"swap_rate=0.1"}, "swap_unit=stream"},
  };
  for (const auto& [start, change] : changes) {
    LmEvalOptions before, after;
    apply_overrides(start, fields_of(before));
    apply_overrides(start, fields_of(after));
    apply_overrides({change}, fields_of(after));
    EXPECT_NE(metric_value(task, evaluate(task, before)), metric_value(task, evaluate(task, after)))
        << change;
  }
}

TEST(LmEvaluation, RefusesWhatMakesNoSense) {
  LanguageModelTask task(small_task_options(), 1);
  LmEvalOptions options = method("sliding");
  options.stride = 9;
  EXPECT_EQ(refusal(task, options), "eval: stride must be at most the window of 8 tokens, got 9");
  options = method("stream");
  options.metric_scope = ops::MetricScope::kSequence;
  EXPECT_EQ(refusal(task, options),
            "eval: metric_scope must be \"trained\" with method = \"stream\", got \"sequence\"");
  options = method("sliding");
  options.window = 1000000;
  EXPECT_NE(refusal(task, options).find("must have at least 1000001 tokens, has "),
            std::string::npos);
}

}  // namespace
}  // namespace elliptical::tasks
