// SPDX-License-Identifier: MIT
//
// Everything a training run is made of, as a recipe spells it: the task with its model and data,
// and how it is trained. What does not change results (threads, where the run lies, how progress is
// shown) is not here but on the command line.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "elliptical/base/options.h"
#include "elliptical/tasks/task.h"

namespace elliptical::run {

/// What weight decay shrinks: everything, or matrices and kernels alone, not what is
/// one-dimensional, a bias, a learned token or a position embedding (DeiT).
enum class DecayRule { kAll, kMatrices };
std::string_view to_string(DecayRule rule);

/// Adam; the gradient is scaled down to `clip_norm` where its norm is larger.
struct OptimizerOptions {
  double learning_rate = 2.5e-4, beta1 = 0.9, beta2 = 0.999, eps = 1e-8;
  double weight_decay = 0.0;
  DecayRule decay_rule = DecayRule::kAll;
  double clip_norm = 0.25;  ///< 0: never
  void visit(FieldList& fields);
};

enum class ScheduleShape { kConstant, kCosine };
std::string_view to_string(ScheduleShape shape);

struct ScheduleOptions {
  ScheduleShape shape = ScheduleShape::kCosine;
  int64_t warmup_steps = 2000;
  std::optional<double> warmup_start;  ///< absent: the warm-up ends with its last step
  double min_ratio = 0.0;
  int64_t cooldown_steps = 0;
  int64_t interval = 1;  ///< an epoch where the rate is one number for each epoch
  int64_t lag = 0;
  void visit(FieldList& fields);
};

enum class MetricOrder { kLowest, kHighest };
std::string_view to_string(MetricOrder order);

enum class SaveErrorPolicy { kStop, kContinue };
std::string_view to_string(SaveErrorPolicy policy);

/// Which weights of a run measurements are of.
enum class Weights { kTrained, kAverage };
std::string_view to_string(Weights weights);  ///< "trained", "ema"
Weights weights_from_string(const std::string& name);

struct TrainOptions {
  int64_t steps = 1000;
  int64_t log_interval = 10;
  int64_t eval_interval = 1000;        ///< 0: only after the last step
  int64_t checkpoint_interval = 1000;  ///< 0: only after the last step
  int64_t checkpoints_kept = 2;
  std::string best_metric;  ///< empty: none is kept for being best
  MetricOrder best_order = MetricOrder::kLowest;
  double ema_decay = 0.0;  ///< 0: no average is kept
  Weights eval_weights = Weights::kTrained;
  SaveErrorPolicy on_save_error = SaveErrorPolicy::kStop;
  void visit(FieldList& fields);
};

struct RunOptions {
  /// `tasks`: what task.name chooses from.
  explicit RunOptions(const std::vector<OptionsEntry>& tasks = tasks::task_choices());

  std::string name;  ///< what tables call runs of this kind; empty: the attention's name
  int64_t seed = 1111;
  std::optional<bool> smoke;  ///< shrunk by --smoke: numbers mean nothing; absent: no
  ChosenOptions task;
  TrainOptions train;
  OptimizerOptions optimizer;
  ScheduleOptions schedule;
  void visit(FieldList& fields);
};

/// A recipe, and how it is changed on the way.
struct RecipeRequest {
  std::filesystem::path recipe;
  std::vector<std::string> assignments;  ///< "a.b=c"
  bool smoke = false;                    ///< shrunk before that
};
/// Throws ConfigError where options do not go together.
RunOptions read_options(const RecipeRequest& request);

/// The task that the options describe, with its initial weights; `vocabulary` as a checkpoint of
/// the weights that it is made for has it.
std::unique_ptr<tasks::Task> make_task(const RunOptions& options,
                                       tasks::TaskUse use,
                                       const std::string& vocabulary = "");

/// Whether the parameter of this name and these dimensions decays.
bool decays(DecayRule rule, std::string_view name, int64_t num_dimensions);

/// The learning rate of update number `step` (from 0), of `steps` in all: linear warm-up, then the
/// shape. The cosine is a function of the step itself, not of the steps since the warm-up, and ends
/// where the cool-down starts. `step` counts in whole intervals, less the lag: DeiT's epoch e has
/// the rate of epoch e - 1.
double learning_rate(const OptimizerOptions& optimizer,
                     const ScheduleOptions& schedule,
                     int64_t step,
                     int64_t steps);

/// Throws ConfigError when the options contradict each other.
void check(const TrainOptions& options);

/// Shrinks training to something that ends within seconds, and says so; the task shrinks its own
/// options.
void shrink(RunOptions& options);

}  // namespace elliptical::run
