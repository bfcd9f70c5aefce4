// SPDX-License-Identifier: MIT
#include "elliptical/tasks/language_model.h"

#include <torch/torch.h>

#include <cmath>

#include "elliptical/base/errors.h"
#include "elliptical/data/text/small_language.h"
#include "elliptical/tasks/lm_evaluation.h"

namespace elliptical::tasks {
namespace {

int64_t length(const std::vector<int32_t>& stream) { return static_cast<int64_t>(stream.size()); }

const LmEvalSet& set_of(const Batch& batch) { return dynamic_cast<const LmEvalSet&>(*batch.set); }

/// Hidden states (B, N, C) of a batch, as its evaluation asks for them.
at::Tensor eval_hidden(models::Lm& model, const Batch& batch) {
  const LmEvalSet& set = set_of(batch);
  if (set.streams()) {
    models::LmStream stream(model);
    std::vector<at::Tensor> steps;
    for (int64_t n = 0; n < batch.input.size(1); ++n) {
      steps.push_back(stream.step(batch.input.narrow(1, n, 1)));
    }
    return at::cat(steps, 1);
  }
  nn::AttentionContext context;
  context.metric_scope = set.metric_scope();
  return model.forward(batch.input, context);
}

}  // namespace

data::Corpus open_text(const TextDataOptions& options) {
  if (!options.train_lines) return data::open_corpus(options.name, options.max_words);
  if (options.name != data::kSmallLanguage) {
    throw ConfigError("data: train_lines goes with name = \"" + std::string(data::kSmallLanguage) +
                      "\" only, got name = \"" + options.name + "\"");
  }
  data::SmallLanguageOptions language{.train_lines = *options.train_lines};
  language.eval_lines = std::min(language.eval_lines, 1 + language.train_lines / 10);
  return data::Corpus(data::small_language_source(language), options.max_words);
}

void TextDataOptions::visit(FieldList& fields) {
  fields.add("name", name, "small-language, a data set of `elliptical data list`, or a folder");
  fields.add("max_words", max_words, "words of the vocabulary that are kept; 0: all", at_least(0));
  fields.add("train_lines", train_lines, "lines of the built-in language; only for it",
             at_least(1));
}

void LanguageModelOptions::visit(FieldList& fields) {
  fields.add_group("data", data);
  fields.add("batch_size", batch_size, "columns of the training text that are read side by side",
             at_least(1));
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

LanguageModelTask::LanguageModelTask(const LanguageModelOptions& options, uint64_t seed)
    : LanguageModelTask(options, open_text(options.data), seed) {}

LanguageModelTask::LanguageModelTask(const LanguageModelOptions& options,
                                     data::Corpus corpus,
                                     uint64_t seed)
    : options_(options), corpus_(std::move(corpus)) {
  corpus_.require_tokens(data::Split::kTrain, options_.batch_size * (options_.model.window + 1));
  model_ = std::make_shared<models::Lm>(options_.model, corpus_.vocabulary().size());
  model_->initialize(seed);
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
  labels["task"] = std::string("language_model");
  return labels;
}

Batch LanguageModelTask::train_batch(int64_t step) const {
  const std::vector<int32_t>& tokens = corpus_.stream(data::Split::kTrain);
  const int64_t columns = options_.batch_size, window = options_.model.window;
  const int64_t index = step % num_column_batches(length(tokens), columns, window);
  return make_token_batch(tokens, column_batch(length(tokens), columns, window, index));
}

at::Tensor LanguageModelTask::loss(const Batch& batch, RandomKey random) {
  nn::AttentionContext context;
  context.training = true;
  context.random = random;
  const at::Tensor hidden = model_->forward(batch.input, context);
  return model_->nll(hidden.flatten(0, 1), batch.target.flatten()).mean();
}

std::unique_ptr<Options> LanguageModelTask::make_eval_options() const {
  return std::make_unique<LmEvalOptions>();
}

std::unique_ptr<EvalSet> LanguageModelTask::eval_set(Options& options) {
  const auto& chosen = dynamic_cast<const LmEvalOptions&>(options);
  if (chosen.method == "stream") {
    if (chosen.metric_scope) {
      throw ConfigError("eval: metric_scope must be \"trained\" with method = \"stream\", got \"" +
                        std::string(to_string(*chosen.metric_scope)) + "\"");
    }
    const models::LmStream can_stream(*model_);  // throws here, before any work, if it can not
  }
  return std::make_unique<LmEvalSet>(corpus_, chosen, options_.model.window, model_->labels());
}

void LanguageModelTask::score(const Batch& batch, Scores& scores, Dump* dump) {
  const at::NoGradGuard no_grad;
  const at::Tensor scored = batch.target.flatten().ge(0).nonzero().squeeze(1);
  const auto pick = [&](const at::Tensor& tensor) { return tensor.index_select(0, scored); };
  const at::Tensor targets = pick(batch.target.flatten());
  const at::Tensor nll =
      model_->nll(pick(eval_hidden(*model_, batch).flatten(0, 1)), targets).to(at::kDouble);
  scores.add("nll", nll.sum().item<double>(), nll.numel());

  const at::Tensor places = pick(batch.category.flatten());
  const std::vector<uint8_t>& flags = set_of(batch).swapped();
  at::Tensor swapped = at::zeros({places.numel()}, at::kBool);
  if (!flags.empty()) {
    const auto* place = places.const_data_ptr<int64_t>();
    auto* flag = swapped.mutable_data_ptr<bool>();
    for (int64_t i = 0; i < places.numel(); ++i)
      flag[i] = flags[static_cast<size_t>(place[i])] != 0;
    const at::Tensor of_swapped = nll.masked_select(swapped);
    const at::Tensor of_clean = nll.masked_select(swapped.logical_not());
    scores.add("nll_swapped", of_swapped.sum().item<double>(), of_swapped.numel());
    scores.add("nll_clean", of_clean.sum().item<double>(), of_clean.numel());
  }
  if (dump != nullptr) {
    (*dump)["log_probability"].push_back(-nll);
    (*dump)["position"].push_back(places);
    (*dump)["swapped"].push_back(swapped);
    (*dump)["target"].push_back(targets);
  }
}

std::vector<Record> LanguageModelTask::metrics(const Scores& scores) const {
  std::vector<Record> records;
  const auto add = [&](const std::string& name, const char* sum_name) {
    const auto found = scores.sums.find(sum_name);
    if (found == scores.sums.end() || found->second.count == 0) return;
    const auto& [total, count] = found->second;
    records.push_back({.metric = name,
                       .value = std::exp(total / static_cast<double>(count)),
                       .count = count,
                       .labels = {}});
  };
  add("perplexity", "nll");
  add("perplexity_swapped_targets", "nll_swapped");
  add("perplexity_clean_targets", "nll_clean");
  return records;
}

}  // namespace elliptical::tasks
