// SPDX-License-Identifier: MIT
#include "elliptical/run/speed.h"

#include <torch/torch.h>

#include <algorithm>
#include <chrono>

#include "elliptical/run/optimizer.h"

namespace elliptical::run {

double measure_units_per_second(tasks::Task& task, const OptimizerOptions& options, int num_steps) {
  using Clock = std::chrono::steady_clock;
  Adam optimizer(task.model(), options);
  task.model().train();
  double fastest = 0;
  for (int step = 0; step <= num_steps; ++step) {
    const auto start = Clock::now();
    const tasks::Batch batch = task.train_batch(step);
    optimizer.clear_gradients();
    task.loss(batch, RandomKey(0).derive(static_cast<uint64_t>(step))).backward();
    optimizer.update(0.0, optimizer.gradient_norm(), step);
    const std::chrono::duration<double> seconds = Clock::now() - start;
    if (step > 0) {
      fastest = std::max(fastest, static_cast<double>(batch.num_units) / seconds.count());
    }
  }
  return fastest;
}

}  // namespace elliptical::run
