// SPDX-License-Identifier: MIT
//
// How a language model is asked, and from hidden states to sums: lm_evaluation.h.
#include <torch/torch.h>

#include <map>

#include "elliptical/nn/attention/metric_source.h"
#include "elliptical/tasks/lm_evaluation.h"
#include "elliptical/tasks/metric_scores.h"

namespace elliptical::tasks {

void LmEvalSet::prepare(nn::Pass& pass) const {
  pass.metric_scope = options_.metric_scope;
  // Where text is damaged as in the released code, a random metric is that code's, too.
  const bool as_released =
      options_.swap_rate > 0.0 && options_.swap_profile == data::SwapProfile::kPublished;
  if (as_released) pass.metric_low = nn::kReleasedAttackLow;
  if (options_.method == kStreamMethod) {
    pass.token_by_token = true;
    pass.metric_statistics = nullptr;  // of a stream nothing is recorded about its metrics
  }
}

/// Which of the places in the stream were swapped; none without damage.
at::Tensor LmEvalSet::are_swapped(const at::Tensor& places) const {
  at::Tensor result = at::zeros({places.numel()}, at::kBool);
  if (swapped_.empty()) return result;
  const auto* place = places.const_data_ptr<int64_t>();
  auto* flag = result.mutable_data_ptr<bool>();
  for (int64_t i = 0; i < places.numel(); ++i) {
    flag[i] = swapped_[static_cast<size_t>(place[i])] != 0;
  }
  return result;
}

/// Adds the targets that `chosen` (all when undefined) picks, whole and per block of the text.
void LmEvalSet::score_targets(const at::Tensor& nll,
                              const at::Tensor& chosen,
                              const std::string& targets,
                              const at::Tensor& places,
                              Scores& scores) const {
  const at::Tensor values = chosen.defined() ? nll.masked_select(chosen) : nll;
  scores.add("nll", values.sum().item<double>(), values.numel(), {{"targets", targets}});
  if (options_.blocks == 0) return;
  const at::Tensor where = chosen.defined() ? places.masked_select(chosen) : places;
  std::map<int64_t, Scores::Sum> blocks;
  for (int64_t i = 0; i < values.numel(); ++i) {
    Scores::Sum& sum = blocks[block_of(where.const_data_ptr<int64_t>()[i])];
    sum.total += values.const_data_ptr<double>()[i];
    ++sum.count;
  }
  for (const auto& [block, sum] : blocks) {
    scores.add("block_nll", sum.total, sum.count, {{"block", block}, {"targets", targets}});
  }
}

void LmEvalSet::score(const Batch& batch,
                      const at::Tensor& said,
                      const nn::Pass& pass,
                      Scores& scores,
                      Dump* dump) const {
  const int64_t N = batch.target.size(1), num_last = said.size(1);
  const auto last = [&](const at::Tensor& all) {
    return all.narrow(1, N - num_last, num_last).flatten();
  };
  const at::Tensor targets = last(batch.target), places = last(batch.place);
  const at::Tensor nll = model_->nll(said.flatten(0, 1), targets).to(at::kDouble);
  const at::Tensor swapped = are_swapped(places);

  score_targets(nll, {}, "all", places, scores);
  if (!swapped_.empty()) {
    score_targets(nll, swapped, "swapped", places, scores);
    score_targets(nll, swapped.logical_not(), "clean", places, scores);
  }
  if (pass.metric_statistics != nullptr) {
    score_metric(*pass.metric_statistics, options_.metric_profile, scores);
  }
  if (dump != nullptr) {
    (*dump)["log_probability"].push_back(-nll);
    (*dump)["position"].push_back(places);
    (*dump)["swapped"].push_back(swapped);
    (*dump)["target"].push_back(targets);
  }
}

}  // namespace elliptical::tasks
