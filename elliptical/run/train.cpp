// SPDX-License-Identifier: MIT
#include "elliptical/run/train.h"

#include <torch/torch.h>

#include <algorithm>
#include <chrono>
#include <cmath>

#include "elliptical/base/config.h"
#include "elliptical/base/errors.h"
#include "elliptical/base/names.h"
#include "elliptical/measure/labels.h"
#include "elliptical/run/data_check.h"
#include "elliptical/run/non_finite.h"
#include "elliptical/run/optimizer.h"
#include "elliptical/run/signals.h"
#include "elliptical/run/weight_average.h"

namespace elliptical::run {
namespace {

using Clock = std::chrono::steady_clock;

/// Whether `step`, which has just been done, is one of every `interval`, or the last.
bool is_due(int64_t step, int64_t interval, int64_t steps) {
  return step > 0 && (step == steps || (interval > 0 && step % interval == 0));
}

class Trainer {
 public:
  explicit Trainer(const TrainJob& job)
      : job_(job),
        options_(*job.options),
        task_(*job.task),
        config_(config_text(*job.options)),
        optimizer_(job.task->model(), job.options->optimizer),
        average_(job.task->model(), job.options->train.ema_decay) {
    for (const auto& item : job.task->model().named_buffers()) {
      buffers_.emplace_back(item.value(), at::Tensor());
    }
  }

  void restore();
  void loop();
  void save_first(int64_t step, const std::string& origin);
  void load(const store::Checkpoint& checkpoint, bool with_optimizer);

 private:
  void update();
  [[noreturn]] void fail_non_finite(const tasks::Batch& batch, double loss, double norm);
  bool evaluate_now();
  void note_best(const Record& record);
  void run_steps();
  void require_finite();
  void save(bool pending);
  bool save_or_say(bool pending, bool must_save);
  void save_before_error();
  RandomKey step_key() const {
    return RandomKey(static_cast<uint64_t>(options_.seed)).derive("train").derive(step_);
  }

  const TrainJob& job_;
  const RunOptions& options_;
  tasks::Task& task_;
  std::string config_;
  Adam optimizer_;
  WeightAverage average_;
  std::string origin_;

  int64_t step_ = 0;  ///< updates done
  bool evaluated_ = false;
  bool pending_ = false;  ///< the evaluation of this step is still to be done
  int64_t saved_step_ = -1;
  bool saved_evaluated_ = false;  ///< whether that checkpoint says that its evaluation is done
  bool is_diverged_ = false;      ///< what was measured last is not finite
  /// Weights and moments are those after `step_`: not in the middle of an update, nor known to be
  /// bad.
  bool is_whole_ = true;
  /// What a forward pass changes, running means for instance, and its values before the step.
  std::vector<std::pair<at::Tensor, at::Tensor>> buffers_;
  /// The task's state before the step that is under way.
  std::optional<std::map<std::string, at::Tensor>> task_state_;
  std::optional<double> best_value_;
  std::optional<int64_t> best_step_;
  std::optional<RecordWriter> records_, log_;
  double train_seconds_ = 0;  ///< of this process
  int64_t train_units_ = 0, train_steps_ = 0;
};

void Trainer::load(const store::Checkpoint& checkpoint, bool with_optimizer) {
  store::copy_tensors(store::named_tensors(task_.model()), checkpoint.model,
                      (checkpoint.folder / "model.safetensors").string());
  average_.restart();
  if (!with_optimizer) return;
  task_.set_state(checkpoint.task);
  store::copy_tensors(optimizer_.state(), checkpoint.optimizer,
                      (checkpoint.folder / "optimizer.safetensors").string());
  if (average_.is_kept() && !checkpoint.average.empty()) {
    store::copy_tensors(average_.state(), checkpoint.average,
                        (checkpoint.folder / "ema.safetensors").string());
  }
}

void Trainer::restore() {
  const auto notice = [this](const std::string& line) { job_.hooks.say(line); };
  const auto checkpoint =
      store::newest_checkpoint(job_.paths.checkpoints(), store::CheckpointPart::kAll, notice);
  if (checkpoint) {
    require_unchanged(job_.paths, options_, task_, checkpoint->state);
    load(*checkpoint, true);
    step_ = saved_step_ = checkpoint->state.step;
    evaluated_ = saved_evaluated_ = checkpoint->state.evaluated;
    origin_ = checkpoint->state.origin;
  }
  // Only now is it certain that this folder is ours to change.
  store::clean_checkpoints(job_.paths.checkpoints(), step_, notice);
  RecordWriter::truncate_after_step(job_.paths.records(), step_, notice);
  RecordWriter::truncate_after_step(job_.paths.log(), step_, notice);
  for (const Record& record : read_records(job_.paths.records())) {
    if (measure::source_of(record) == measure::Source::kTraining) note_best(record);
  }
  if (checkpoint)
    job_.hooks.say(job_.paths.folder.string() + ": continues after step " + std::to_string(step_));
}

void Trainer::note_best(const Record& record) {
  if (record.metric != options_.train.best_metric || !std::isfinite(record.value)) return;
  const bool lower = options_.train.best_order == MetricOrder::kLowest;
  if (best_value_ && !(lower ? record.value < *best_value_ : record.value > *best_value_)) return;
  best_value_ = record.value;
  best_step_ = measure::step_of(record);
}

void Trainer::update() {
  const auto start = Clock::now();
  const tasks::Batch batch = task_.train_batch(step_);
  for (auto& [buffer, before] : buffers_) before = buffer.clone();
  optimizer_.clear_gradients();
  task_state_ = task_.state();
  auto pass = nn::Pass::of_training(step_key());
  tasks::Loss loss = task_.loss(batch, pass);
  const double loss_value = loss.total.item<double>();
  std::map<std::string, double> parts;
  for (const auto& [name, part] : loss.parts) parts[name] = part.item<double>();
  if (!std::isfinite(loss_value)) fail_non_finite(batch, loss_value, 0);
  loss.total.backward();
  loss = {};  // the graph goes before the update: less memory at the peak
  pass = {};
  const double norm = optimizer_.gradient_norm();
  if (!std::isfinite(norm)) fail_non_finite(batch, loss_value, norm);
  const double rate =
      learning_rate(options_.optimizer, options_.schedule, step_, options_.train.steps);
  is_whole_ = false;
  optimizer_.update(rate, norm, step_);
  average_.update();
  ++step_;
  for (auto& [buffer, before] : buffers_) before = at::Tensor();
  task_state_.reset();
  is_whole_ = true;

  train_seconds_ += std::chrono::duration<double>(Clock::now() - start).count();
  train_units_ += batch.num_units;
  ++train_steps_;
  const double units_per_second = static_cast<double>(train_units_) / train_seconds_;
  if (is_due(step_, options_.train.log_interval, options_.train.steps)) {
    log_->append({.metric = "loss",
                  .value = loss_value,
                  .count = batch.num_units,
                  .labels = {{"gradient_norm", norm},
                             {"learning_rate", rate},
                             {"step", step_},
                             {std::string(task_.unit()) + "_per_second", units_per_second}}});
    for (const auto& [name, value] : parts) {
      log_->append({.metric = "loss_" + name,
                    .value = value,
                    .count = batch.num_units,
                    .labels = {{"step", step_}}});
    }
  }
  job_.hooks.show({.phase = "train",
                   .done = step_,
                   .total = options_.train.steps,
                   .loss = loss_value,
                   .units_per_second = units_per_second,
                   .unit = task_.unit(),
                   .seconds_left = train_seconds_ / static_cast<double>(train_steps_) *
                                   static_cast<double>(options_.train.steps - step_)});
}

void Trainer::fail_non_finite(const tasks::Batch& batch, double loss, double norm) {
  is_whole_ = false;  // finite still, but on the way out: older checkpoints are the better ones
  std::string what;
  if (std::isfinite(loss)) {
    what = "the norm of the gradient must be finite, is " + std::to_string(norm) +
           "; nearest to the loss: the gradient of " + non_finite_gradient(optimizer_.parameters());
  } else {
    what = "loss must be finite, is " + std::to_string(loss) + "; first in " +
           first_non_finite_layer(store::named_tensors(task_.model()), [&] {
             task_.set_state(*task_state_);
             auto pass = nn::Pass::of_training(step_key());
             task_.loss(batch, pass);
           });
  }
  throw RunError(job_.paths.folder.string() + ": step " + std::to_string(step_ + 1) + " (batch " +
                 std::to_string(step_) + "): " + what +
                 " (nothing was updated or saved; try a lower optimizer.learning_rate or "
                 "optimizer.clip_norm)");
}

/// Throws RunError that names what is not finite: such a state is neither saved nor measured.
void Trainer::require_finite() {
  for (const store::NamedTensors& tensors :
       {store::named_tensors(task_.model()), optimizer_.state(), average_.state()}) {
    const std::string name = non_finite_tensor(tensors);
    if (name.empty()) continue;
    is_whole_ = false;
    throw RunError(job_.paths.folder.string() + ": step " + std::to_string(step_) + ": " + name +
                   " must be finite after this step, is not (nothing was saved, older checkpoints "
                   "are kept; try a lower optimizer.learning_rate or optimizer.clip_norm)");
  }
}

bool Trainer::evaluate_now() {
  const std::unique_ptr<Options> eval_options = task_.make_eval_options();
  const Labels labels = run_labels(job_.paths, options_, task_, step_, measure::Source::kTraining);
  std::optional<AverageInUse> average;
  if (options_.train.eval_weights == Weights::kAverage) average.emplace(average_);
  const auto measured = evaluate(task_, *eval_options, labels, job_.hooks);
  average.reset();
  if (!measured) return false;
  // A process that died between two of these lines may have left some of them.
  std::vector<std::string> present;
  for (const Record& record : read_records(job_.paths.records())) {
    if (measure::source_of(record) == measure::Source::kTraining &&
        measure::step_of(record) == step_)
      present.push_back(to_json_line(record));
  }
  for (const Record& record : *measured) {
    const bool is_new =
        std::find(present.begin(), present.end(), to_json_line(record)) == present.end();
    if (is_new) records_->append(record);
    note_best(record);
  }
  if (!measured->empty()) {
    is_diverged_ = !std::isfinite(measured->front().value);
    char value[32];
    std::snprintf(value, sizeof value, "%.6g", measured->front().value);
    const std::string method = measure::label_text(measured->front(), "method");
    job_.hooks.say("step " + std::to_string(step_) + ": " + measured->front().metric + " " + value +
                   (method.empty() ? "" : " (method " + method + ")"));
  }
  return true;
}

void Trainer::save(bool pending) {
  if (saved_step_ != step_) {
    require_finite();
    const CheckpointState state{.step = step_,
                                .seed = options_.seed,
                                .evaluated = !pending,
                                .config = config_,
                                .data = task_.data_fingerprint(),
                                .program = job_.program,
                                .origin = origin_};
    const auto task_state = task_.state();
    store::save_checkpoint(job_.paths.checkpoints(), state,
                           {.model = store::named_tensors(task_.model()),
                            .optimizer = optimizer_.state(),
                            .average = average_.state(),
                            .task = {task_state.begin(), task_state.end()},
                            .vocabulary = task_.vocabulary()},
                           [this](const std::string& line) { job_.hooks.say(line); });
    saved_step_ = step_;
    saved_evaluated_ = !pending;
  } else if (!pending && !saved_evaluated_) {
    store::mark_evaluated(job_.paths.checkpoints(), step_);
    saved_evaluated_ = true;
  }
  // Weights may be finite and broken: what is measured says so, and until then, and where it does,
  // no older checkpoint goes.
  if (pending || is_diverged_) return;
  store::retain_checkpoints(job_.paths.checkpoints(), options_.train.checkpoints_kept, best_step_);
}

void Trainer::save_first(int64_t step, const std::string& origin) {
  step_ = step;
  origin_ = origin;
  // One that starts at its last step is not trained, but measured.
  save(/*pending=*/step > 0 && step == options_.train.steps);
}

/// Whether it is saved. A failure ends training or not, as the configuration has it.
bool Trainer::save_or_say(bool pending, bool must_save) {
  try {
    save(pending);
    return true;
  } catch (const RunError&) {  // weights that are not finite: no later save would be better
    throw;
  } catch (const std::runtime_error& error) {  // FileError, and what the file system says
    if (options_.train.on_save_error == SaveErrorPolicy::kStop || must_save) {
      is_whole_ = false;  // it would fail again
      throw;
    }
    job_.hooks.say(std::string(error.what()) + " (training goes on without this checkpoint)");
    return false;
  }
}

/// Whatever ends the loop, the steps before it are kept: a picture that can not be read, memory
/// that is not there. What ended it is told by whoever catches it.
void Trainer::save_before_error() {
  if (!is_whole_ || step_ == 0 || saved_step_ == step_) return;
  try {
    const at::NoGradGuard no_grad;
    for (auto& [buffer, before] : buffers_) {
      if (before.defined()) buffer.copy_(before);
    }
    if (task_state_) task_.set_state(*task_state_);
    save(pending_);
    const std::string run = job_.paths.folder.string();
    job_.hooks.say(run + ": step " + std::to_string(step_) +
                   " is saved, what follows it failed (continue: elliptical resume " + run + ")");
  } catch (const std::exception& error) {
    job_.hooks.say(std::string(error.what()) +
                   " (so the steps since the last checkpoint are lost)");
  }
}

void Trainer::run_steps() {
  const TrainOptions& train = options_.train;
  pending_ = is_due(step_, train.eval_interval, train.steps) && !evaluated_;
  // A run of no steps is one of its first weights, to be measured.
  bool save_due = is_due(step_, train.checkpoint_interval, train.steps) || train.steps == 0;
  while (true) {
    if (pending_ && stop_signal() == 0) {
      // What is due is saved before it is measured: evaluations take long, and may fail.
      if (save_due) save_or_say(pending_, /*must_save=*/false);
      require_finite();
      pending_ = !evaluate_now();
    }
    const bool must_stop = stop_signal() != 0;
    const bool asked = take_save_request();
    const bool is_done = step_ >= train.steps && !pending_;
    const bool is_marked = saved_step_ != step_ || saved_evaluated_ || pending_;
    if (must_stop || asked || save_due || best_step_ == step_ || !is_marked) {
      const bool is_saved = save_or_say(pending_, must_stop || is_done);
      if (asked && is_saved) {
        job_.hooks.say("step " + std::to_string(step_) + ": saved, as SIGUSR1 asked");
      }
    }
    if (is_done) return;
    // Also one that came while this step was being saved: no other step is begun.
    const int signal = stop_signal();
    if (signal != 0 && saved_step_ == step_) {
      const std::string run = job_.paths.folder.string();
      throw Interrupted(run + ": stopped by " + signal_name(signal) + " after step " +
                            std::to_string(step_) + ", saved (continue: elliptical resume " + run +
                            ")",
                        signal);
    }
    update();
    pending_ = is_due(step_, train.eval_interval, train.steps);
    save_due = is_due(step_, train.checkpoint_interval, train.steps);
  }
}

void Trainer::loop() {
  const SignalGuard signals;
  records_.emplace(job_.paths.records());
  log_.emplace(job_.paths.log());
  task_.model().train();
  try {
    run_steps();
  } catch (...) {
    save_before_error();
    throw;
  }
}

}  // namespace

std::string config_text(const RunOptions& options) {
  RunOptions copy = options;
  return to_toml(fields_of(copy));
}

void read_config(const RunPaths& paths, RunOptions& options) {
  read_recipe(paths.config(), fields_of(options));
}

void check_new_run(const RunOptions& options, const tasks::Task& task) {
  const std::string& wanted = options.train.best_metric;
  const std::vector<std::string> names = task.metric_names();
  if (wanted.empty() || names.empty()) return;
  if (std::find(names.begin(), names.end(), wanted) != names.end()) return;
  throw ConfigError("train.best_metric: must be measured while training: " +
                    unknown_name(wanted, names));
}

void train(const TrainJob& job) {
  check(job.options->train);
  Trainer trainer(job);
  trainer.restore();
  trainer.loop();
}

void save_fork(const TrainJob& job, const store::Checkpoint& source, bool restart) {
  Trainer trainer(job);
  trainer.load(source, !restart);
  const std::string origin =
      fs::absolute(source.folder).string() + " step " + std::to_string(source.state.step);
  trainer.save_first(restart ? 0 : source.state.step, origin);
}

}  // namespace elliptical::run
