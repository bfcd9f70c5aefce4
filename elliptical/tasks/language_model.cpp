// SPDX-License-Identifier: MIT
#include "elliptical/tasks/language_model.h"

#include <torch/torch.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "elliptical/base/checkpoint_folder.h"
#include "elliptical/base/errors.h"
#include "elliptical/base/option_limits.h"
#include "elliptical/data/text/small_language.h"
#include "elliptical/tasks/language_model_measures.h"
#include "elliptical/tasks/lm_evaluation.h"
#include "elliptical/tasks/task_memory.h"

namespace elliptical::tasks {
namespace {

int64_t length(const std::vector<int32_t>& stream) { return static_cast<int64_t>(stream.size()); }

constexpr int64_t kSnapshotTokens = 64;

data::TextSource text_source(const TextDataOptions& options) {
  if (!options.train_lines) return data::open_source(options.name);
  if (options.name != data::kSmallLanguage) {
    throw ConfigError("data: train_lines goes with name = \"" + std::string(data::kSmallLanguage) +
                      "\" only, got name = \"" + options.name + "\"");
  }
  data::SmallLanguageOptions language{.train_lines = *options.train_lines};
  language.eval_lines = std::min(language.eval_lines, 1 + language.train_lines / 10);
  return data::small_language_source(language);
}

/// Words of weights: they are not chosen anew.
data::Vocabulary kept_words(const TextDataOptions& options, const std::string& text) {
  data::Vocabulary words = data::Vocabulary::from_text(text, kVocabularyFile);
  // <eos> and <unk> are always there.
  if (options.max_words > 0 && words.size() > std::max<int64_t>(options.max_words, 2)) {
    throw ConfigError("data: max_words must be 0 or at least the " + std::to_string(words.size()) +
                      " words that the weights belong to, got " +
                      std::to_string(options.max_words));
  }
  return words;
}

/// Hidden states (B, N, C) of windows that are fed token by token: every target of a stream counts.
at::Tensor stream_hidden(models::Lm& model, const at::Tensor& tokens, nn::Pass& pass) {
  std::vector<std::unique_ptr<nn::AttentionCache>> caches;
  pass.caches = &caches;
  std::vector<at::Tensor> steps;
  for (pass.num_before = 0; pass.num_before < tokens.size(1); ++pass.num_before) {
    steps.push_back(model.forward(tokens.narrow(1, pass.num_before, 1), pass));
  }
  pass.caches = nullptr;
  pass.num_before = 0;
  return at::cat(steps, 1);
}

}  // namespace

data::Corpus open_text(const TextDataOptions& options, const std::string& vocabulary) {
  data::TextSource source = text_source(options);
  if (vocabulary.empty()) return data::Corpus(std::move(source), options.max_words);
  return {std::move(source), kept_words(options, vocabulary)};
}

data::Vocabulary open_vocabulary(const TextDataOptions& options, const std::string& vocabulary) {
  return vocabulary.empty() ? open_text(options).vocabulary() : kept_words(options, vocabulary);
}

void TextDataOptions::visit(FieldList& fields) {
  fields.add("name", name, "small-language, a data set of `elliptical data list`, or a folder");
  fields.add("max_words", max_words, "words of the vocabulary that are kept; 0: all", at_least(0));
  fields.add("train_lines", train_lines, "lines of the built-in language; only for it",
             between(1, 1'000'000));
}

void LanguageModelOptions::visit(FieldList& fields) {
  fields.add_group("data", data);
  fields.add("batch_size", batch_size, "columns of the training text that are read side by side",
             between(1, kMostBatch));
  fields.add_group("model", model);
}

std::unique_ptr<Options> LanguageModelOptions::clone() const {
  return std::make_unique<LanguageModelOptions>(*this);
}

void LanguageModelOptions::shrink() {
  data = {
      .name = std::string(data::kSmallLanguage), .max_words = data.max_words, .train_lines = 200};
  batch_size = std::min<int64_t>(batch_size, 4);
  model.num_layers = std::min<int64_t>(model.num_layers, 2);
  model.num_heads = std::min<int64_t>(model.num_heads, 2);
  model.dim = 32;
  model.feedforward_dim = std::min<int64_t>(model.feedforward_dim, 64);
  model.window = std::min<int64_t>(model.window, 32);
}

std::shared_ptr<models::Lm> make_lm(const LanguageModelOptions& options,
                                    int64_t num_words,
                                    uint64_t seed,
                                    TaskUse use) {
  require_task_memory(use, lm_num_weights(options.model, num_words), lm_kept_activations(options));
  auto model = std::make_shared<models::Lm>(options.model, num_words);
  model->initialize(seed);
  return model;
}

LanguageModelTask::LanguageModelTask(const LanguageModelOptions& options, const TaskSetup& setup)
    : LanguageModelTask(options, open_text(options.data, setup.vocabulary), setup) {}

LanguageModelTask::LanguageModelTask(const LanguageModelOptions& options,
                                     data::Corpus corpus,
                                     const TaskSetup& setup)
    : options_(options), shard_(setup.shard), corpus_(std::move(corpus)) {
  rows_of(shard_, options_.batch_size);  // throws
  corpus_.require_tokens(data::Split::kTrain, options_.batch_size * (options_.model.window + 1));
  model_ = make_lm(options_, corpus_.vocabulary().size(), setup.seed, setup.use);
}

int64_t LanguageModelTask::num_train_units() const {
  const int64_t rows = length(corpus_.stream(data::Split::kTrain)) / options_.batch_size;
  return (rows - 1) * options_.batch_size;
}

std::map<std::string, std::string> LanguageModelTask::data_fingerprint() const {
  return corpus_.fingerprint();
}

std::map<std::string, LabelValue> LanguageModelTask::labels() const {
  std::map<std::string, LabelValue> labels = model_->labels();
  labels["num_parameters"] = model_->num_parameters();
  labels["task"] = std::string(kLanguageModelMeasures.task);
  return labels;
}

Batch LanguageModelTask::train_batch(int64_t step) const {
  const std::vector<int32_t>& tokens = corpus_.stream(data::Split::kTrain);
  const int64_t columns = options_.batch_size, window = options_.model.window;
  const int64_t index = step % num_column_batches(length(tokens), columns, window);
  const WindowBatch all = column_batch(length(tokens), columns, window, index);
  const auto [first, count] = rows_of(shard_, columns);
  return make_token_batch(tokens, {all.begin() + first, all.begin() + first + count});
}

/// The windows of a batch score equally many targets, which are their last ones.
at::Tensor LanguageModelTask::run(const Batch& batch, nn::Pass& pass) {
  if (pass.token_by_token) return stream_hidden(*model_, batch.input, pass);
  return model_->forward(batch.input, pass, batch.num_units / batch.input.size(0));
}

Loss LanguageModelTask::loss(const Batch& batch, nn::Pass& pass) {
  const at::Tensor hidden = forward(batch, pass);
  return with_auxiliary(model_->nll(hidden.flatten(0, 1), batch.target.flatten()).mean(), pass);
}

std::unique_ptr<Options> LanguageModelTask::make_eval_options() const {
  return std::make_unique<LmEvalOptions>();
}

std::unique_ptr<EvalSet> LanguageModelTask::eval_set(Options& options) {
  LmEvalOptions chosen = dynamic_cast<const LmEvalOptions&>(options);
  // Windows that are computed together must not know of each other: the method has one at a time.
  if (model_->mixes_sequences()) chosen.batch_size = 1;
  if (chosen.method == kStreamMethod) {
    if (chosen.metric_scope) {
      throw ConfigError("eval: metric_scope must be \"trained\" with method = \"stream\", got \"" +
                        std::string(to_string(*chosen.metric_scope)) + "\"");
    }
    const models::LmStream can_stream(*model_);  // throws here, before any work, if it can not
  }
  auto set = std::make_unique<LmEvalSet>(corpus_, chosen, model_);
  // As wide as a batch gets: windows side by side, of which columns are parts of the text.
  const bool sliding = chosen.method == kSlidingMethod;
  const int64_t length_all = length(corpus_.stream(chosen.split));
  const int64_t B = std::min(sliding ? chosen.batch_size : chosen.columns, length_all);
  const int64_t N = std::min(chosen.window.value_or(options_.model.window),
                             sliding ? length_all : length_all / B);
  require_pass_memory(static_cast<double>(B * N) * (5 * static_cast<double>(options_.model.dim) +
                                                    options_.model.feed_forward_cost().widest));
  return set;
}

std::vector<Record> LanguageModelTask::metrics(const Scores& scores) const {
  std::vector<Record> records;
  for (const auto& [targets, name] :
       {std::pair{"all", "perplexity"}, std::pair{"swapped", "perplexity_swapped_targets"},
        std::pair{"clean", "perplexity_clean_targets"}}) {
    const auto sum = scores.sums.find({"nll", {{"targets", std::string(targets)}}});
    if (sum == scores.sums.end() || sum->second.count == 0) continue;
    records.push_back({.metric = name,
                       .value = std::exp(sum->second.mean()),
                       .count = sum->second.count,
                       .labels = {}});
  }
  for (const auto& [key, sum] : scores.sums) {
    const auto& [name, labels] = key;
    if (name == "nll" || sum.count == 0) continue;
    records.push_back({.metric = name, .value = sum.mean(), .count = sum.count, .labels = labels});
  }
  return records;
}

std::optional<Snapshot> LanguageModelTask::snapshot(Options& options) {
  const auto& chosen = dynamic_cast<const LmEvalOptions&>(options);
  const std::vector<int32_t>& stream = corpus_.stream(chosen.split);
  const int64_t N = std::min({kSnapshotTokens, options_.model.window, length(stream)});
  const at::Tensor tokens =
      at::tensor(std::vector<int64_t>(stream.begin(), stream.begin() + N)).unsqueeze(0);

  const at::NoGradGuard no_grad;
  nn::Trace trace;
  auto pass = nn::Pass::of_trace(trace);
  pass.metric_scope = chosen.metric_scope;
  forward({.input = tokens, .num_units = N}, pass);

  Snapshot result;
  result.tensors.emplace_back("tokens", tokens[0]);
  for (const auto& [name, tensor] : trace.tensors) {
    if (!name.ends_with(".values")) result.tensors.emplace_back(name, tensor[0].contiguous());
  }
  nlohmann::json words = nlohmann::json::array();
  for (int64_t n = 0; n < N; ++n)
    words.push_back(corpus_.vocabulary().word(stream[static_cast<size_t>(n)]));
  result.metadata = {{"split", to_string(chosen.split)}, {"words", words.dump()}};
  return result;
}

}  // namespace elliptical::tasks
