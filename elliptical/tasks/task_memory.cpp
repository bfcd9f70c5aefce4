// SPDX-License-Identifier: MIT
#include "elliptical/tasks/task_memory.h"

#include "elliptical/base/available_memory.h"

namespace elliptical::tasks {

double task_bytes(TaskUse use, double num_weights, double kept_activations) {
  const bool measures = use == TaskUse::kMeasuring;
  return sizeof(float) * (measures ? num_weights : 4 * num_weights + kept_activations);
}

void require_task_memory(TaskUse use, double num_weights, double kept_activations) {
  require_memory(task_bytes(use, num_weights, kept_activations),
                 use == TaskUse::kMeasuring ? "model" : "training",
                 use == TaskUse::kMeasuring
                     ? "free some memory"
                     : "a smaller task.batch_size, or a narrower model of fewer layers");
}

void require_pass_memory(double num_activations) {
  require_memory(sizeof(float) * num_activations, "eval",
                 "a smaller batch_size, or fewer columns of text");
}

}  // namespace elliptical::tasks
