// SPDX-License-Identifier: MIT
//
// Language modelling: predict each next word of a text. Training reads the text in equal columns,
// in order, window after window; there is no shuffling. What is measured is the perplexity exp(mean
// -log p(next word)), whole and, under word swap, apart for targets that were swapped and for clean
// targets in a swapped context.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "elliptical/data/text/corpus.h"
#include "elliptical/models/lm.h"
#include "elliptical/tasks/task.h"

namespace elliptical::tasks {

struct TextDataOptions {
  std::string name = "small-language";
  int64_t max_words = 0;
  std::optional<int64_t> train_lines;

  void visit(FieldList& fields);
};

/// The text that the options name, in the words of `vocabulary` (Task::vocabulary); where that is
/// empty in those of its own training split.
data::Corpus open_text(const TextDataOptions& options, const std::string& vocabulary = "");

/// The words that `vocabulary` names, or where that is empty those of the text, which is read.
data::Vocabulary open_vocabulary(const TextDataOptions& options, const std::string& vocabulary);

struct LanguageModelOptions : Options {
  TextDataOptions data;
  int64_t batch_size = 96;
  models::LmOptions model;

  void visit(FieldList& fields) override;
  std::unique_ptr<Options> clone() const override;
  /// Two small layers on a few lines of the built-in language: seconds.
  void shrink();
};

/// The model with its first weights. Throws MemoryError when that, or its training, can not fit.
std::shared_ptr<models::Lm> make_lm(const LanguageModelOptions& options,
                                    int64_t num_words,
                                    uint64_t seed,
                                    TaskUse use);

class LanguageModelTask : public Task {
 public:
  /// Throws MemoryError when model and training can not fit.
  LanguageModelTask(const LanguageModelOptions& options, const TaskSetup& setup);
  LanguageModelTask(const LanguageModelOptions& options, uint64_t seed)
      : LanguageModelTask(options, TaskSetup{.seed = seed}) {}
  /// On another text than the options name.
  LanguageModelTask(const LanguageModelOptions& options,
                    data::Corpus corpus,
                    const TaskSetup& setup);

  torch::nn::Module& model() override { return *model_; }
  const char* unit() const override { return "tokens"; }
  int64_t num_train_units() const override;
  std::map<std::string, std::string> data_fingerprint() const override;
  std::map<std::string, LabelValue> labels() const override;
  std::string vocabulary() const override { return corpus_.vocabulary().to_text(); }
  std::string data_description() const override { return corpus_.description(); }

  Batch train_batch(int64_t step) const override;
  Loss loss(const Batch& batch, nn::Pass& pass) override;

  std::unique_ptr<EvalSet> eval_set(Options& options) override;
  std::unique_ptr<Options> make_eval_options() const override;
  std::vector<Record> metrics(const Scores& scores) const override;
  std::vector<std::string> metric_names() const override { return {"perplexity"}; }
  std::optional<Snapshot> snapshot(Options& options) override;

  models::Lm& lm() { return *model_; }
  const data::Corpus& corpus() const { return corpus_; }

 protected:
  at::Tensor run(const Batch& batch, nn::Pass& pass) override;

 private:
  LanguageModelOptions options_;
  Shard shard_;
  data::Corpus corpus_;
  std::shared_ptr<models::Lm> model_;
};

/// Weights of the largest tensors of a model and activations that a training step keeps, by
/// arithmetic: neither is built.
double lm_num_weights(const models::LmOptions& model, int64_t num_words);
double lm_kept_activations(const LanguageModelOptions& options);

/// For the table: what training costs, and the task on made-up data of the same vocabulary.
Cost lm_cost(const Options& options);
std::unique_ptr<Task> rehearse_lm(const Options& options);
/// Of a sliding window, which reads each token many times; other methods read as little as a step.
int64_t lm_eval_units(const Options& options, const std::string& method, const std::string& split);
EvalCost lm_eval_cost(const Options& options, const std::string& method, int64_t num_tokens);

}  // namespace elliptical::tasks
