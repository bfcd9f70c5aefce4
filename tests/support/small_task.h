// SPDX-License-Identifier: MIT
//
// A language-model task on a few lines of the built-in language, for exact tests.
#pragma once

#include "elliptical/tasks/language_model.h"
#include "elliptical/tasks/lm_evaluation.h"
#include "tests/support/attention_variants.h"
#include "tests/support/one_thread.h"
#include "tests/support/passes.h"

namespace elliptical::support {

inline tasks::LanguageModelOptions small_task_options(const AttentionVariant& variant = {
                                                          .attention = "elliptical"}) {
  tasks::LanguageModelOptions options;
  options.data.train_lines = 40;
  options.batch_size = 3;
  options.model.num_layers = 2;
  options.model.dim = 16;
  options.model.num_heads = 2;
  options.model.feedforward_dim = 16;
  options.model.window = 8;
  options.model.cutoffs = {40, 80};
  options.model.attention = variant.options();
  return options;
}

/// All batches of an evaluation.
inline tasks::Scores evaluate(tasks::Task& task,
                              tasks::LmEvalOptions options,
                              tasks::Dump* dump = nullptr) {
  const OneThread one_thread;
  const auto set = task.eval_set(options);
  tasks::Scores scores;
  for (int64_t i = 0; i < set->size(); ++i) score(task, *set, i, scores, dump);
  return scores;
}

/// The perplexity, or the other metric of that name.
inline double metric_value(const tasks::Task& task,
                           const tasks::Scores& scores,
                           const std::string& name = "perplexity") {
  for (const Record& record : task.metrics(scores)) {
    if (record.metric == name) return record.value;
  }
  return -1.0;
}

}  // namespace elliptical::support
