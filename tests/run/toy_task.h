// SPDX-License-Identifier: MIT
//
// The smallest task that has everything a loop meets: two layers with dropout between them,
// generated data, an evaluation with two metrics. Tests can make it misbehave.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "elliptical/run/run_options.h"
#include "elliptical/tasks/task.h"

namespace elliptical::run::testing {

struct ToyOptions : Options {
  int64_t width = 8;
  int64_t batch = 4;
  double dropout = 0.25;
  int64_t data_version = 1;    ///< part of the data's fingerprint
  int64_t bad_loss_step = -1;  ///< from this step on what layer "second" reads is infinite
  int64_t bad_gradient_step = -1;
  int64_t eval_batches = 3;
  /// The mean of all inputs so far, which each step hands to the next one: part of the loss.
  bool carries_state = false;
  int64_t bad_memory_step = -1;  ///< from this step on what it hands on is not finite
  std::string eval_cost;         ///< what an evaluation says it costs
  void visit(FieldList& fields) override;
  std::unique_ptr<Options> clone() const override { return std::make_unique<ToyOptions>(*this); }
};

struct ToyEvalOptions : Options {
  double noise = 0.0;
  void visit(FieldList& fields) override {
    fields.add("noise", noise, "added to the input", at_least(0));
  }
  std::unique_ptr<Options> clone() const override {
    return std::make_unique<ToyEvalOptions>(*this);
  }
};

/// A table with this task alone, as tasks::task_choices() is one of all.
const std::vector<OptionsEntry>& toy_choices();

std::unique_ptr<tasks::Task> make_toy_task(const RunOptions& options);

/// Options of a run of a few steps.
RunOptions toy_run_options(int64_t steps);

/// Called by the task before each training step ("train"), within it ("loss") and before each
/// evaluated batch ("eval"); tests raise signals from it. Empty again at the end of a test.
extern std::function<void(const std::string& phase, int64_t index)> toy_hook;

}  // namespace elliptical::run::testing
