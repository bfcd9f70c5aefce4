// SPDX-License-Identifier: MIT
#include "elliptical/run/train.h"

#include <torch/torch.h>

#include <chrono>
#include <cmath>

#include "elliptical/base/config.h"
#include "elliptical/base/errors.h"
#include "elliptical/base/names.h"
#include "elliptical/run/non_finite.h"
#include "elliptical/run/optimizer.h"
#include "elliptical/run/signals.h"
#include "elliptical/run/weight_average.h"

namespace elliptical::run {
namespace {

using Clock = std::chrono::steady_clock;

/// Label of records that training itself wrote.
constexpr const char* kSource = "source";
constexpr const char* kTraining = "train";

/// Whether `step`, which has just been done, is one of every `interval`, or the last.
bool is_due(int64_t step, int64_t interval, int64_t steps) {
  return step > 0 && (step == steps || (interval > 0 && step % interval == 0));
}

/// "name: CHECKSUM, was CHECKSUM" for each piece of data that is not what it was.
std::vector<std::string> data_differences(const std::map<std::string, std::string>& now,
                                          const std::map<std::string, std::string>& before) {
  std::vector<std::string> result;
  for (const auto& [name, checksum] : now) {
    const auto found = before.find(name);
    if (found == before.end())
      result.push_back(name + ": is new");
    else if (found->second != checksum)
      result.push_back(name + ": " + checksum + ", was " + found->second);
  }
  for (const auto& [name, checksum] : before) {
    if (!now.contains(name)) result.push_back(name + ": is gone");
  }
  return result;
}

std::string joined(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += (text.empty() ? "" : "; ") + line;
  return text;
}

int64_t step_of(const Record& record) {
  const auto label = record.labels.find("step");
  if (label == record.labels.end() || !std::holds_alternative<int64_t>(label->second)) return -1;
  return std::get<int64_t>(label->second);
}

bool is_of_training(const Record& record) {
  const auto label = record.labels.find(kSource);
  return label != record.labels.end() && label->second == LabelValue(std::string(kTraining));
}

class Trainer {
 public:
  explicit Trainer(const TrainJob& job)
      : job_(job),
        options_(*job.options),
        task_(*job.task),
        config_(config_text(*job.options)),
        optimizer_(job.task->model(), job.options->optimizer),
        average_(job.task->model(), job.options->train.ema_decay) {}

  void restore();
  void loop();
  void save_first(int64_t step, const std::string& origin);
  void load(const Checkpoint& checkpoint, bool with_optimizer);

 private:
  void check_unchanged(const CheckpointState& before) const;
  void update();
  [[noreturn]] void fail_non_finite(const tasks::Batch& batch, double loss, double norm);
  bool evaluate_now();
  void note_best(const Record& record);
  void save(bool pending);
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
  int64_t saved_step_ = -1;
  std::optional<double> best_value_;
  std::optional<int64_t> best_step_;
  std::optional<RecordWriter> records_, log_;
  double train_seconds_ = 0;  ///< of this process
  int64_t train_units_ = 0, train_steps_ = 0;
};

void Trainer::check_unchanged(const CheckpointState& before) const {
  RunOptions now = options_, then = options_;
  read_recipe_text(before.config, job_.paths.checkpoints() / "state.json", fields_of(then));
  std::vector<std::string> changes = differences(fields_of(now), fields_of(then));
  for (const std::string& line : data_differences(task_.data_fingerprint(), before.data)) {
    changes.push_back("data " + line);
  }
  if (changes.empty()) return;
  throw RunError(
      job_.paths.folder.string() +
      ": configuration and data must be those of the checkpoint, changed: " + joined(changes) +
      " (put them back, or: elliptical fork " + job_.paths.folder.string() + " --run DIR)");
}

void Trainer::load(const Checkpoint& checkpoint, bool with_optimizer) {
  copy_tensors(named_tensors(task_.model()), checkpoint.model,
               (checkpoint.folder / "model.safetensors").string());
  average_.restart();
  if (!with_optimizer) return;
  copy_tensors(optimizer_.state(), checkpoint.optimizer,
               (checkpoint.folder / "optimizer.safetensors").string());
  if (average_.is_kept() && !checkpoint.average.empty()) {
    copy_tensors(average_.state(), checkpoint.average,
                 (checkpoint.folder / "ema.safetensors").string());
  }
}

void Trainer::restore() {
  const auto notice = [this](const std::string& line) { job_.hooks.say(line); };
  const auto checkpoint = newest_checkpoint(job_.paths.checkpoints(), CheckpointPart::kAll, notice);
  if (checkpoint) {
    check_unchanged(checkpoint->state);
    load(*checkpoint, true);
    step_ = saved_step_ = checkpoint->state.step;
    evaluated_ = checkpoint->state.evaluated;
    origin_ = checkpoint->state.origin;
  }
  // Only now is it certain that this folder is ours to change.
  clean_checkpoints(job_.paths.checkpoints(), step_, notice);
  RecordWriter::truncate_after_step(job_.paths.records(), step_);
  RecordWriter::truncate_after_step(job_.paths.log(), step_);
  for (const Record& record : read_records(job_.paths.records())) {
    if (is_of_training(record)) note_best(record);
  }
  if (checkpoint)
    job_.hooks.say(job_.paths.folder.string() + ": continues after step " + std::to_string(step_));
}

void Trainer::note_best(const Record& record) {
  if (record.metric != options_.train.best_metric) return;
  const bool lower = options_.train.best_order == MetricOrder::kLowest;
  if (best_value_ && !(lower ? record.value < *best_value_ : record.value > *best_value_)) return;
  best_value_ = record.value;
  best_step_ = step_of(record);
}

void Trainer::update() {
  const auto start = Clock::now();
  const tasks::Batch batch = task_.train_batch(step_);
  optimizer_.clear_gradients();
  at::Tensor loss = task_.loss(batch, step_key());
  const double loss_value = loss.item<double>();
  if (!std::isfinite(loss_value)) fail_non_finite(batch, loss_value, 0);
  loss.backward();
  loss.reset();  // the graph goes before the update: less memory at the peak
  const double norm = optimizer_.gradient_norm();
  if (!std::isfinite(norm)) fail_non_finite(batch, loss_value, norm);
  const double rate =
      learning_rate(options_.optimizer, options_.schedule, step_, options_.train.steps);
  optimizer_.update(rate, norm, step_);
  average_.update();
  ++step_;

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
  std::string what;
  if (std::isfinite(loss)) {
    what = "the norm of the gradient must be finite, is " + std::to_string(norm) +
           "; nearest to the loss: the gradient of " + non_finite_gradient(optimizer_.parameters());
  } else {
    what = "loss must be finite, is " + std::to_string(loss) + "; first in " +
           first_non_finite_layer(named_tensors(task_.model()),
                                  [&] { task_.loss(batch, step_key()); });
  }
  throw RunError(job_.paths.folder.string() + ": step " + std::to_string(step_ + 1) + " (batch " +
                 std::to_string(step_) + "): " + what +
                 " (nothing was updated or saved; try a lower optimizer.learning_rate or "
                 "optimizer.clip_norm)");
}

bool Trainer::evaluate_now() {
  const std::unique_ptr<Options> eval_options = task_.make_eval_options();
  const Labels labels = run_labels(job_.paths, options_, task_, step_, kTraining);
  std::optional<AverageInUse> average;
  if (options_.train.eval_weights == Weights::kAverage) average.emplace(average_);
  const auto measured = evaluate(task_, *eval_options, labels, job_.hooks);
  average.reset();
  if (!measured) return false;
  // A process that died between two of these lines may have left some of them.
  std::vector<std::string> present;
  for (const Record& record : read_records(job_.paths.records())) {
    if (is_of_training(record) && step_of(record) == step_) present.push_back(to_json_line(record));
  }
  for (const Record& record : *measured) {
    const bool is_new =
        std::find(present.begin(), present.end(), to_json_line(record)) == present.end();
    if (is_new) records_->append(record);
    note_best(record);
  }
  if (!measured->empty()) {
    char value[32];
    std::snprintf(value, sizeof value, "%.6g", measured->front().value);
    const auto method = measured->front().labels.find("method");
    job_.hooks.say("step " + std::to_string(step_) + ": " + measured->front().metric + " " + value +
                   (method == measured->front().labels.end()
                        ? ""
                        : " (method " + std::get<std::string>(method->second) + ")"));
  }
  return true;
}

void Trainer::save(bool pending) {
  if (saved_step_ == step_) return;
  const CheckpointState state{.step = step_,
                              .seed = options_.seed,
                              .evaluated = !pending,
                              .config = config_,
                              .data = task_.data_fingerprint(),
                              .program = job_.program,
                              .origin = origin_};
  save_checkpoint(job_.paths.checkpoints(), state, named_tensors(task_.model()), optimizer_.state(),
                  average_.state(), [this](const std::string& line) { job_.hooks.say(line); });
  saved_step_ = step_;
  retain_checkpoints(job_.paths.checkpoints(), options_.train.checkpoints_kept, best_step_);
}

void Trainer::save_first(int64_t step, const std::string& origin) {
  step_ = step;
  origin_ = origin;
  save(false);
}

void Trainer::loop() {
  const TrainOptions& train = options_.train;
  const SignalGuard signals;
  records_.emplace(job_.paths.records());
  log_.emplace(job_.paths.log());
  task_.model().train();
  bool pending = is_due(step_, train.eval_interval, train.steps) && !evaluated_;
  // A run of no steps is one of its first weights, to be measured.
  bool save_due = is_due(step_, train.checkpoint_interval, train.steps) || train.steps == 0;
  while (true) {
    if (pending && stop_signal() == 0) pending = !evaluate_now();
    const int signal = stop_signal();
    const bool asked = take_save_request();
    const bool is_done = step_ >= train.steps && !pending;
    if (signal != 0 || asked || save_due || best_step_ == step_) {
      try {
        save(pending);
        if (asked) job_.hooks.say("step " + std::to_string(step_) + ": saved, as SIGUSR1 asked");
      } catch (const std::runtime_error& error) {  // FileError, and what the file system says
        if (train.on_save_error == SaveErrorPolicy::kStop || signal != 0 || is_done) throw;
        job_.hooks.say(std::string(error.what()) + " (training goes on without this checkpoint)");
      }
    }
    if (is_done) return;
    if (signal != 0) {
      const std::string run = job_.paths.folder.string();
      throw Interrupted(run + ": stopped by " + signal_name(signal) + " after step " +
                            std::to_string(step_) + ", saved (continue: elliptical resume " + run +
                            ")",
                        signal);
    }
    update();
    pending = is_due(step_, train.eval_interval, train.steps);
    save_due = is_due(step_, train.checkpoint_interval, train.steps);
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

void train(const TrainJob& job) {
  check(job.options->train);
  Trainer trainer(job);
  trainer.restore();
  trainer.loop();
}

void save_fork(const TrainJob& job, const Checkpoint& source, bool restart) {
  Trainer trainer(job);
  trainer.load(source, !restart);
  const std::string origin =
      fs::absolute(source.folder).string() + " step " + std::to_string(source.state.step);
  trainer.save_first(restart ? 0 : source.state.step, origin);
}

}  // namespace elliptical::run
