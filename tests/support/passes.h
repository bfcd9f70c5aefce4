// SPDX-License-Identifier: MIT
//
// What a task says in one pass, where a test needs nothing else of it.
#pragma once

#include "elliptical/nn/attention/metric_statistics.h"
#include "elliptical/tasks/task.h"

namespace elliptical::support {

/// Of a training step with this seed.
inline at::Tensor loss_of(tasks::Task& task, const tasks::Batch& batch, uint64_t seed) {
  auto pass = nn::Pass::of_training(RandomKey(seed));
  return task.loss(batch, pass).total;
}

/// Logits of pictures, pixels or normalized ones.
inline at::Tensor logits_of(tasks::Task& task, const at::Tensor& pictures, bool are_normalized) {
  auto pass = nn::Pass::of_evaluation();
  return task.forward({.input = pictures, .is_prepared = are_normalized}, pass);
}

/// One batch of an evaluation, as run::evaluate measures it.
inline void score(tasks::Task& task,
                  const tasks::EvalSet& set,
                  int64_t index,
                  tasks::Scores& scores,
                  tasks::Dump* dump = nullptr) {
  nn::MetricStatistics statistics;
  auto pass = nn::Pass::of_evaluation(&statistics);
  tasks::score_batch(task, set, set.get(index), pass, scores, dump);
}

}  // namespace elliptical::support
