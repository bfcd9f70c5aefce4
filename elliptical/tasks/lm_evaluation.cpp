// SPDX-License-Identifier: MIT
#include "elliptical/tasks/lm_evaluation.h"

#include <torch/torch.h>

#include "elliptical/base/errors.h"
#include "elliptical/base/option_limits.h"
#include "elliptical/measure/labels.h"

namespace elliptical::tasks {

void LmEvalOptions::visit(FieldList& fields) {
  fields.add_enum("split", split, {"train", "valid", "test"}, data::split_from_string,
                  "which text is read");
  fields.add_choice("method",
                    {.names = {"block", kSlidingMethod, kStreamMethod},
                     .get = [this] { return method; },
                     .set = [this](const std::string& name) { method = name; },
                     .selects_fields = true},
                    "block: windows side by side; sliding: one that moves by `stride`, as in the "
                    "paper; stream: those of block, fed token by token");
  fields.add("window", window, "tokens read at once; the model's when absent",
             between(1, kMostTokens));
  if (method == kSlidingMethod) {
    fields.add("stride", stride, "tokens that the window moves by, which are those it scores",
               between(1, kMostTokens));
    fields.add("batch_size", batch_size, "windows computed at once", between(1, kMostBatch));
  } else {
    fields.add("columns", columns, "equal parts of the text that are read side by side",
               between(1, kMostBatch));
  }
  fields.add_choice(
      "metric_scope",
      {.names = {"trained", "prefix", "sequence"},
       .get =
           [this] {
             return metric_scope ? std::string(to_string(*metric_scope)) : std::string("trained");
           },
       .set =
           [this](const std::string& name) {
             metric_scope =
                 name == "trained" ? std::nullopt : std::optional(ops::metric_scope(name));
           }},
      "scope of the metric of elliptical attention; sequence sees the future");
  fields.add("swap_rate", swap_rate, "share of the words that are swapped for AAA; 0: none",
             between(0, 1));
  fields.add("swap_seed", swap_seed, "which words", any_seed());
  fields.add_enum("swap_profile", swap_profile, {"strict", "published"},
                  data::swap_profile_from_string, "sound, or with the released code's quirk");
  fields.add_enum("swap_unit", swap_unit, {"line", "stream"}, data::swap_unit_from_string,
                  "at least one word of each line, or the exact rate over the whole text");
  fields.add("blocks", blocks, "equal parts of the text that are also recorded apart; 0: none",
             between(0, 10000));
  fields.add("metric_profile", metric_profile,
             "also record the mean of each coordinate of the metric, per layer and head");
}

std::unique_ptr<Options> LmEvalOptions::clone() const {
  return std::make_unique<LmEvalOptions>(*this);
}

LmEvalSet::LmEvalSet(const data::Corpus& corpus,
                     const LmEvalOptions& options,
                     std::shared_ptr<const models::Lm> model)
    : options_(options),
      model_(std::move(model)),
      window_(options.window.value_or(model_->options.window)) {
  const bool sliding = options_.method == kSlidingMethod;
  if (sliding && options_.stride > window_) {
    throw ConfigError("eval: stride must be at most the window of " + std::to_string(window_) +
                      " tokens, got " + std::to_string(options_.stride));
  }
  corpus.require_tokens(options_.split, sliding ? window_ + 1 : 2 * options_.columns);
  labels_ = {{"data", corpus.name()},
             {"method", options_.method},
             {"perturbation", std::string("none")},
             {"split", to_string(options_.split)},
             {"window", window_}};
  labels_[sliding ? "stride" : "columns"] = sliding ? options_.stride : options_.columns;
  const std::map<std::string, LabelValue> model_labels = model_->labels();
  if (options_.metric_scope && model_labels.contains("metric_estimator")) {
    const std::string estimator = measure::label_text(model_labels.at("metric_estimator"));
    labels_["metric_scope"] = std::string(to_string(*options_.metric_scope));
    labels_["leaks_future"] = *options_.metric_scope == ops::MetricScope::kSequence &&
                              ops::metric_estimator(estimator)->reads_tokens();
  }

  tokens_ = corpus.stream(options_.split);
  if (options_.swap_rate > 0.0) swap_words(corpus);
  if (sliding) {
    sliding_ = sliding_batches(static_cast<int64_t>(tokens_.size()), window_, options_.stride,
                               options_.batch_size);
  }
}

void LmEvalSet::swap_words(const data::Corpus& corpus) {
  const data::WordSwapOptions swap{.rate = options_.swap_rate,
                                   .seed = static_cast<uint64_t>(options_.swap_seed),
                                   .profile = options_.swap_profile,
                                   .unit = options_.swap_unit};
  const data::SwappedText damaged = data::swap_words(corpus.text(options_.split), swap);
  tokens_ = data::encode(damaged.text, corpus.vocabulary());
  swapped_ = damaged.swapped;
  labels_["perturbation"] = std::string("word_swap");
  labels_["profile"] = to_string(options_.swap_profile);
  labels_["swap_rate"] = options_.swap_rate;
  labels_["swap_seed"] = options_.swap_seed;
  labels_["swap_token_rate"] = damaged.token_rate();
  labels_["swap_unit"] = to_string(options_.swap_unit);
  // A swapped-in word that the vocabulary lacks is <unk>, which is often easier to predict.
  labels_["swap_word_known"] = corpus.vocabulary().contains(swap.word);
  labels_["swap_word_rate"] = damaged.word_rate();
}

int64_t LmEvalSet::size() const {
  if (!sliding_.empty()) return static_cast<int64_t>(sliding_.size());
  return num_column_batches(static_cast<int64_t>(tokens_.size()), options_.columns, window_);
}

std::string LmEvalSet::cost() const {
  if (sliding_.empty()) return "";
  const auto num_tokens = static_cast<int64_t>(tokens_.size());
  const SlidingCost cost = sliding_cost(num_tokens, window_, options_.stride);
  return "sliding window: " + std::to_string(cost.num_windows) + " windows of " +
         std::to_string(window_) + " tokens, " + std::to_string(cost.num_computed) +
         " tokens are read to score " + std::to_string(cost.num_scored) +
         " (--method block reads " + std::to_string(num_tokens) + ")";
}

Batch LmEvalSet::get(int64_t index) const {
  return make_token_batch(tokens_, sliding_.empty()
                                       ? column_batch(static_cast<int64_t>(tokens_.size()),
                                                      options_.columns, window_, index)
                                       : sliding_[static_cast<size_t>(index)]);
}

Batch make_token_batch(const std::vector<int32_t>& tokens, const WindowBatch& windows) {
  const auto B = static_cast<int64_t>(windows.size()), N = windows.front().length;
  Batch batch{.input = at::empty({B, N}, at::kLong),
              .target = at::empty({B, N}, at::kLong),
              .place = at::empty({B, N}, at::kLong)};
  auto* input = batch.input.mutable_data_ptr<int64_t>();
  auto* target = batch.target.mutable_data_ptr<int64_t>();
  auto* place = batch.place.mutable_data_ptr<int64_t>();
  for (const Window& window : windows) {
    for (int64_t n = 0; n < N; ++n) {
      const int64_t next = window.begin + n + 1;
      *input++ = tokens[static_cast<size_t>(next - 1)];
      *target++ = n < N - window.num_scored ? -1 : tokens[static_cast<size_t>(next)];
      *place++ = next;
    }
    batch.num_units += window.num_scored;
  }
  return batch;
}

}  // namespace elliptical::tasks
