// SPDX-License-Identifier: MIT
//
// What training a language model costs, by arithmetic, and a stand-in for its data to measure the
// speed of a step where the data are not.
#include <torch/torch.h>

#include <algorithm>
#include <cmath>

#include "elliptical/data/catalog.h"
#include "elliptical/tasks/language_model.h"
#include "elliptical/tasks/lm_evaluation.h"
#include "elliptical/tasks/task_memory.h"
#include "elliptical/tasks/token_windows.h"

namespace elliptical::tasks {
namespace {

struct TextSize {
  int64_t num_words = 0, num_train_tokens = 0;
};

/// From the catalog where the data set stands there, else from the text itself.
TextSize text_size(const TextDataOptions& options) {
  TextSize size;
  for (const data::DataSet& set : data::catalog()) {
    if (options.name != set.name || set.files.empty()) continue;
    size = {set.files.front().num_words, set.files.front().num_tokens};
  }
  if (size.num_words == 0) {
    const data::Corpus corpus = open_text(options);
    size = {corpus.vocabulary().size(),
            static_cast<int64_t>(corpus.stream(data::Split::kTrain).size())};
  }
  if (options.max_words > 0) size.num_words = std::min(size.num_words, options.max_words);
  return size;
}

/// Tokens of a split: from the catalog where the data set stands there, else from the text itself.
int64_t num_text_tokens(const TextDataOptions& options, data::Split split) {
  for (const data::DataSet& set : data::catalog()) {
    if (options.name != set.name) continue;
    for (const data::DataFile& file : set.files) {
      if (file.num_tokens > 0 && file.name == to_string(split) + ".txt") return file.num_tokens;
    }
  }
  return static_cast<int64_t>(open_text(options).stream(split).size());
}

/// Rows of the output layer that an average token is multiplied with: the head always, a cluster
/// when the word is in it. Words are taken to be Zipfian: rank r has a share of 1 / r.
double softmax_rows(const std::vector<int64_t>& cutoffs, int64_t num_words) {
  std::vector<int64_t> ends;
  for (const int64_t cutoff : cutoffs) {
    if (cutoff < num_words) ends.push_back(cutoff);
  }
  if (ends.empty()) return static_cast<double>(num_words);
  auto rows = static_cast<double>(ends[0] + static_cast<int64_t>(ends.size()));
  ends.push_back(num_words);
  for (size_t i = 1; i < ends.size(); ++i) {
    const auto begin = static_cast<double>(ends[i - 1]), end = static_cast<double>(ends[i]);
    rows += std::log(end / begin) / std::log(static_cast<double>(num_words)) * (end - begin);
  }
  return rows;
}

/// Text of `num_words` different words: each once in the training split, then Zipfian draws.
std::string rehearsal_text(data::Split split, int64_t num_words, int64_t num_draws) {
  constexpr int64_t kWordsPerLine = 50;
  std::string text;
  const auto add = [&](int64_t word, int64_t number) {
    text += 'w';
    text += std::to_string(word);
    text += number % kWordsPerLine == 0 ? '\n' : ' ';
  };
  if (split == data::Split::kTrain) {
    for (int64_t word = 0; word < num_words - 2; ++word) add(word, word);  // <eos> and <unk> beside
  }
  RandomStream random(RandomKey(0).derive("rehearsal"));
  for (int64_t i = 0; i < num_draws; ++i) {
    const double rank = std::pow(static_cast<double>(num_words - 2), random.uniform());
    add(static_cast<int64_t>(rank) - 1, i);
  }
  return text;
}

}  // namespace

double lm_num_weights(const models::LmOptions& model, int64_t num_words) {
  const auto C = static_cast<double>(model.dim);
  const double inner = model.head_dim ? static_cast<double>(*model.head_dim * model.num_heads) : C;
  return static_cast<double>(num_words) * C +
         static_cast<double>(model.num_layers) * 4 * C * inner +
         model.feed_forward_cost().num_weights;
}

double lm_kept_activations(const LanguageModelOptions& options) {
  const models::LmOptions& model = options.model;
  const auto C = static_cast<double>(model.dim);
  // Per token and layer: input, q, k, v, attention output, its projection, norms, and what the
  // feed-forward layer keeps.
  const double per_token =
      static_cast<double>(model.num_layers) * 9 * C + model.feed_forward_cost().kept + 2 * C;
  return static_cast<double>(options.batch_size * model.window) * per_token;
}

Cost lm_cost(const Options& options) {
  const auto& lm = dynamic_cast<const LanguageModelOptions&>(options);
  const models::LmOptions& model = lm.model;
  const TextSize text = text_size(lm.data);
  require_task_memory(TaskUse::kMeasuring, lm_num_weights(model, text.num_words), 0);
  const int64_t num_parameters = models::Lm(model, text.num_words).num_parameters();
  const int64_t num_tokens = lm.batch_size * model.window;
  const auto C = static_cast<double>(model.dim), L = static_cast<double>(model.num_layers),
             N = static_cast<double>(model.window), T = static_cast<double>(num_tokens);
  const double products = L * 4 * C * C + model.feed_forward_cost().products +
                          softmax_rows(model.cutoffs, text.num_words) * C;
  // Two products of N / 2 visible keys forward, five backward.
  const double attention = L * 7 * (N / 2) * C;
  return {.num_parameters = num_parameters,
          .units_per_step = num_tokens,
          .units_per_epoch = (text.num_train_tokens / lm.batch_size - 1) * lm.batch_size,
          .flops_per_step = T * (6 * products + 2 * attention),
          .bytes = task_bytes(TaskUse::kNewRun, static_cast<double>(num_parameters),
                              lm_kept_activations(lm))};
}

int64_t lm_eval_units(const Options& options, const std::string& method, const std::string& split) {
  if (method != kSlidingMethod) return 0;
  return num_text_tokens(dynamic_cast<const LanguageModelOptions&>(options).data,
                         data::split_from_string(split));
}

EvalCost lm_eval_cost(const Options& options, const std::string& method, int64_t num_tokens) {
  if (method != kSlidingMethod) return {};
  const auto& lm = dynamic_cast<const LanguageModelOptions&>(options);
  const int64_t window = lm.model.window;
  const SlidingCost cost = sliding_cost(num_tokens, window, /*stride=*/1);
  // A forward pass takes about a third of a step.
  return {.steps = static_cast<double>(cost.num_computed) /
                   (3 * static_cast<double>(lm.batch_size * window)),
          .num_units = static_cast<double>(cost.num_computed),
          .unit = "tokens",
          .method = "sliding windows",
          .size = std::to_string(cost.num_windows) + " windows of " + std::to_string(window) +
                  " tokens"};
}

std::unique_ptr<Task> rehearse_lm(const Options& options) {
  LanguageModelOptions lm = dynamic_cast<const LanguageModelOptions&>(options);
  lm.batch_size = std::min(lm.batch_size, kRehearsalBatch);
  const int64_t num_words = text_size(lm.data).num_words;
  const int64_t num_draws = 20 * lm.batch_size * (lm.model.window + 1);
  data::TextSource source{.name = "rehearsal",
                          .origins = {"rehearsal", "rehearsal", "rehearsal"},
                          .read = [num_words, num_draws](data::Split split) {
                            return rehearsal_text(split, num_words, num_draws);
                          }};
  return std::make_unique<LanguageModelTask>(lm, data::Corpus(std::move(source)), TaskSetup{});
}

}  // namespace elliptical::tasks
