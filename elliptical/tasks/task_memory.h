// SPDX-License-Identifier: MIT
//
// What a task needs of memory, by arithmetic: what can not fit is refused before anything is built.
#pragma once

#include "elliptical/tasks/task.h"

namespace elliptical::tasks {

/// Bytes, in float32. Training keeps a gradient and two moments of each weight, and activations for
/// the backward.
double task_bytes(TaskUse use, double num_weights, double kept_activations);

/// Throws MemoryError when they are more than there are.
void require_task_memory(TaskUse use, double num_weights, double kept_activations);

/// The same for a batch of an evaluation, which keeps what one layer needs at a time.
void require_pass_memory(double num_activations);

}  // namespace elliptical::tasks
