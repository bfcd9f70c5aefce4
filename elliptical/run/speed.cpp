// SPDX-License-Identifier: MIT
#include "elliptical/run/speed.h"

#include <torch/torch.h>

#include <algorithm>
#include <chrono>
#include <limits>

#include "elliptical/run/optimizer.h"

namespace elliptical::run {

StepTime measure_step(tasks::Task& task, const OptimizerOptions& options, int num_steps) {
  using Clock = std::chrono::steady_clock;
  using Seconds = std::chrono::duration<double>;
  constexpr double kForever = std::numeric_limits<double>::infinity();
  Adam optimizer(task.model(), options);
  task.model().train();
  StepTime fastest{.unit_seconds = kForever, .update_seconds = kForever};
  for (int step = 0; step <= num_steps; ++step) {
    const auto start = Clock::now();
    const tasks::Batch batch = task.train_batch(step);
    optimizer.clear_gradients();
    auto pass = nn::Pass::of_training(RandomKey(0).derive(static_cast<uint64_t>(step)));
    task.loss(batch, pass).total.backward();
    const auto update = Clock::now();
    optimizer.update(0.0, optimizer.gradient_norm(), step);
    if (step == 0) continue;
    const auto units = static_cast<double>(batch.num_units);
    fastest.unit_seconds = std::min(fastest.unit_seconds, Seconds(update - start).count() / units);
    fastest.update_seconds =
        std::min(fastest.update_seconds, Seconds(Clock::now() - update).count());
  }
  return fastest;
}

}  // namespace elliptical::run
