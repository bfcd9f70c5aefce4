// SPDX-License-Identifier: MIT
//
// How a language model is measured on a stream of tokens:
//
//   block    equal columns, consecutive windows, every target counts
//   sliding  one window that moves by `stride`, only the new targets count: full context for all.
//            With stride 1 what the paper reports
//   stream   the windows of `block`, fed token by token through the cache
//
// With or without word swap, and with the metric of elliptical attention over the scope that the
// model was trained with or over another one.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "elliptical/data/corrupt/word_swap.h"
#include "elliptical/data/text/corpus.h"
#include "elliptical/models/lm.h"
#include "elliptical/tasks/task.h"
#include "elliptical/tasks/token_windows.h"

namespace elliptical::tasks {

inline constexpr const char *kSlidingMethod = "sliding", *kStreamMethod = "stream";

struct LmEvalOptions : Options {
  data::Split split = data::Split::kValid;
  std::string method = "block";
  std::optional<int64_t> window;
  int64_t columns = 10;
  int64_t stride = 1;
  int64_t batch_size = 32;
  std::optional<ops::MetricScope> metric_scope;  ///< absent: as trained
  double swap_rate = 0.0;
  int64_t swap_seed = 1;
  data::SwapProfile swap_profile = data::SwapProfile::kStrict;
  data::SwapUnit swap_unit = data::SwapUnit::kLine;
  int64_t blocks = 0;
  bool metric_profile = false;

  void visit(FieldList& fields) override;
  std::unique_ptr<Options> clone() const override;
};

class LmEvalSet : public EvalSet {
 public:
  /// Of `model`, which turns hidden states into probabilities. Throws ConfigError when the options
  /// do not go together, DataError when the split is too short.
  LmEvalSet(const data::Corpus& corpus,
            const LmEvalOptions& options,
            std::shared_ptr<const models::Lm> model);

  int64_t size() const override;
  Batch get(int64_t index) const override;
  void prepare(nn::Pass& pass) const override;
  /// `said` are the hidden states (B, num_last, C) of the last tokens.
  void score(const Batch& batch,
             const at::Tensor& said,
             const nn::Pass& pass,
             Scores& scores,
             Dump* dump) const override;
  std::map<std::string, LabelValue> labels() const override { return labels_; }
  std::string cost() const override;

  /// Which of the equal parts of the text, of `blocks`, a place in the stream belongs to.
  int64_t block_of(int64_t place) const {
    return place * options_.blocks / static_cast<int64_t>(tokens_.size());
  }

 private:
  void swap_words(const data::Corpus& corpus);
  at::Tensor are_swapped(const at::Tensor& places) const;
  void score_targets(const at::Tensor& nll,
                     const at::Tensor& chosen,
                     const std::string& targets,
                     const at::Tensor& places,
                     Scores& scores) const;

  LmEvalOptions options_;
  std::shared_ptr<const models::Lm> model_;
  int64_t window_;
  std::map<std::string, LabelValue> labels_;
  std::vector<int32_t> tokens_;
  std::vector<uint8_t> swapped_;  ///< 1 where a token was swapped; empty without damage
  std::vector<WindowBatch> sliding_;
};

/// A batch of windows: input (B, N), target (B, N) with -1 where it does not count, place (B, N)
/// the place of each target in the stream.
Batch make_token_batch(const std::vector<int32_t>& tokens, const WindowBatch& windows);

}  // namespace elliptical::tasks
