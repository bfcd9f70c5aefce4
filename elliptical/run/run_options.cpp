// SPDX-License-Identifier: MIT
#include "elliptical/run/run_options.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

#include "elliptical/base/config.h"
#include "elliptical/base/errors.h"
#include "elliptical/base/option_limits.h"

namespace elliptical::run {

std::string_view to_string(ScheduleShape shape) {
  return shape == ScheduleShape::kConstant ? "constant" : "cosine";
}

std::string_view to_string(DecayRule rule) { return rule == DecayRule::kAll ? "all" : "matrices"; }

std::string_view to_string(MetricOrder order) {
  return order == MetricOrder::kLowest ? "lowest" : "highest";
}

std::string_view to_string(Weights weights) {
  return weights == Weights::kTrained ? "trained" : "ema";
}

Weights weights_from_string(const std::string& name) {
  return name == "ema" ? Weights::kAverage : Weights::kTrained;
}

std::string_view to_string(SaveErrorPolicy policy) {
  return policy == SaveErrorPolicy::kStop ? "stop" : "continue";
}

void OptimizerOptions::visit(FieldList& fields) {
  fields.add("learning_rate", learning_rate, "peak learning rate", at_least(0));
  fields.add("beta1", beta1, "decay of the mean of gradients", below(0, 1));
  fields.add("beta2", beta2, "decay of the mean of squared gradients", below(0, 1));
  fields.add("eps", eps, "added to the root of the mean square", above(0));
  fields.add("weight_decay", weight_decay, "decoupled weight decay (AdamW)", at_least(0));
  fields.add_enum(
      "decay_rule", decay_rule, {"all", "matrices"},
      [](const std::string& name) {
        return name == "all" ? DecayRule::kAll : DecayRule::kMatrices;
      },
      "what decays: all, or matrices without vectors, biases, tokens and positions");
  fields.add("clip_norm", clip_norm, "largest norm of the gradient; 0: no limit", at_least(0));
}

void ScheduleOptions::visit(FieldList& fields) {
  fields.add_enum(
      "shape", shape, {"constant", "cosine"},
      [](const std::string& name) {
        return name == "constant" ? ScheduleShape::kConstant : ScheduleShape::kCosine;
      },
      "what follows the warm-up");
  fields.add("warmup_steps", warmup_steps, "steps of linear warm-up", at_least(0));
  fields.add("warmup_start", warmup_start,
             "rate of the first step of the warm-up; absent: peak / warmup_steps", at_least(0));
  fields.add("min_ratio", min_ratio, "where the cosine ends, as a part of the peak", between(0, 1));
  fields.add("cooldown_steps", cooldown_steps,
             "steps at the end that keep the rate where the cosine ends", at_least(0));
  fields.add("interval", interval, "steps between changes of the rate, an epoch for instance",
             at_least(1));
  fields.add("lag", lag, "steps that the schedule is behind", at_least(0));
}

void TrainOptions::visit(FieldList& fields) {
  fields.add("steps", steps, "updates in all", at_least(0));
  fields.add("log_interval", log_interval, "steps between lines of log.jsonl", at_least(1));
  fields.add("eval_interval", eval_interval,
             "steps between evaluations; 0: only after the last step", at_least(0));
  fields.add("checkpoint_interval", checkpoint_interval,
             "steps between checkpoints; 0: only after the last step", at_least(0));
  fields.add("checkpoints_kept", checkpoints_kept, "newest checkpoints that are kept", at_least(1));
  fields.add("best_metric", best_metric,
             "the checkpoint that is best in this metric is saved and kept too; empty: none");
  fields.add_enum(
      "best_order", best_order, {"lowest", "highest"},
      [](const std::string& name) {
        return name == "lowest" ? MetricOrder::kLowest : MetricOrder::kHighest;
      },
      "which value of best_metric is best");
  fields.add("ema_decay", ema_decay,
             "decay per step of a moving average of all weights, kept beside them; 0: none",
             below(0, 1));
  fields.add_enum(
      "eval_weights", eval_weights, {"trained", "ema"}, weights_from_string,
      "what is measured unless a command says --weights: trained, or ema, that average");
  fields.add_enum(
      "on_save_error", on_save_error, {"stop", "continue"},
      [](const std::string& name) {
        return name == "stop" ? SaveErrorPolicy::kStop : SaveErrorPolicy::kContinue;
      },
      "when a checkpoint can not be written: stop, or try again at the next interval");
}

RunOptions::RunOptions(const std::vector<OptionsEntry>& tasks) : task(tasks, tasks.front().name) {}

void RunOptions::visit(FieldList& fields) {
  fields.add("name", name, "what tables call runs of this kind; empty: the attention's name");
  fields.add("seed", seed, "of initial weights, batches and dropout", any_seed());
  fields.add("smoke", smoke, "shrunk by --smoke: its numbers mean nothing; absent: no");
  fields.add_group("task", task);
  fields.add_group("train", train);
  fields.add_group("optimizer", optimizer);
  fields.add_group("schedule", schedule);
}

bool decays(DecayRule rule, std::string_view name, int64_t num_dimensions) {
  if (rule == DecayRule::kAll) return true;
  const std::string_view last = name.substr(name.rfind('.') + 1);  // npos + 1 is 0
  const auto is = [&](std::string_view other) { return last == other; };
  constexpr std::array kExempt = {"bias", "cls_token", "dist_token", "pos_embed"};
  return num_dimensions > 1 && std::none_of(kExempt.begin(), kExempt.end(), is);
}

double learning_rate(const OptimizerOptions& optimizer,
                     const ScheduleOptions& schedule,
                     int64_t step,
                     int64_t steps) {
  const double peak = optimizer.learning_rate;
  step = std::max<int64_t>(step / schedule.interval * schedule.interval - schedule.lag, 0);
  if (step < schedule.warmup_steps) {
    const auto length = static_cast<double>(schedule.warmup_steps);
    if (!schedule.warmup_start) return peak * static_cast<double>(step + 1) / length;
    return *schedule.warmup_start +
           (peak - *schedule.warmup_start) * static_cast<double>(step) / length;
  }
  if (schedule.shape == ScheduleShape::kConstant) return peak;
  const int64_t length = std::max<int64_t>(steps - schedule.cooldown_steps, 1);
  const double part = static_cast<double>(step) / static_cast<double>(length);
  const double cosine = 0.5 * (1.0 + std::cos(std::numbers::pi * std::min(part, 1.0)));
  return peak * (schedule.min_ratio + (1.0 - schedule.min_ratio) * cosine);
}

void check(const TrainOptions& options) {
  if (options.eval_weights != Weights::kAverage || options.ema_decay > 0) return;
  throw ConfigError(
      "train: ema_decay must be above 0 with eval_weights = \"ema\", got 0 (0.9999, for instance)");
}

void shrink(RunOptions& options) {
  options.smoke = true;
  TrainOptions& train = options.train;
  train.steps = std::min<int64_t>(train.steps, 4);
  train.log_interval = 1;
  train.eval_interval = std::min<int64_t>(train.eval_interval, 2);
  train.checkpoint_interval = std::min<int64_t>(train.checkpoint_interval, 2);
  options.schedule.warmup_steps = std::min<int64_t>(options.schedule.warmup_steps, 2);
  options.schedule.cooldown_steps = std::min<int64_t>(options.schedule.cooldown_steps, 1);
  options.schedule.interval = std::min<int64_t>(options.schedule.interval, 2);
  options.schedule.lag = std::min<int64_t>(options.schedule.lag, 2);
}

RunOptions read_options(const RecipeRequest& request) {
  RunOptions options;
  read_recipe(request.recipe, fields_of(options));
  if (request.smoke) {
    shrink(options);
    tasks::find_task(options.task.name()).shrink(options.task.options());
  }
  apply_overrides(request.assignments, fields_of(options));
  check(options.train);
  return options;
}

std::unique_ptr<tasks::Task> make_task(const RunOptions& options,
                                       tasks::TaskUse use,
                                       const std::string& vocabulary) {
  RunOptions copy = options;
  const tasks::TaskEntry& entry = tasks::find_task(copy.task.name());
  return entry.make(
      copy.task.options(),
      {.seed = static_cast<uint64_t>(copy.seed), .use = use, .vocabulary = vocabulary});
}

}  // namespace elliptical::run
