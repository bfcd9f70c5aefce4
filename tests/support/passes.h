// SPDX-License-Identifier: MIT
//
// What a task says in one pass, where a test needs nothing else of it.
#pragma once

#include "elliptical/tasks/classifier.h"

namespace elliptical::support {

/// Of a training step with this seed.
inline at::Tensor loss_of(tasks::Task& task, const tasks::Batch& batch, uint64_t seed) {
  auto pass = nn::Pass::of_training(RandomKey(seed));
  return task.loss(batch, pass).total;
}

inline at::Tensor logits_of(tasks::Classifier& task, const at::Tensor& normalized) {
  nn::Pass pass;
  return task.logits(normalized, pass);
}

}  // namespace elliptical::support
