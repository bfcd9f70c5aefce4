// SPDX-License-Identifier: MIT
#include "elliptical/run/comparison_runner.h"

#include <fmt/format.h>
#include <torch/torch.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>
#include <set>
#include <thread>

#include "elliptical/base/config.h"
#include "elliptical/base/errors.h"
#include "elliptical/run/comparison_cost.h"
#include "elliptical/run/comparison_state.h"
#include "elliptical/run/jobs.h"
#include "elliptical/run/measure_run.h"
#include "elliptical/run/signals.h"
#include "elliptical/run/start_run.h"
#include "elliptical/run/train.h"

namespace elliptical::run {
namespace {

using Clock = std::chrono::steady_clock;

/// Parts of the data that are recorded apart: enough for a bootstrap over them.
constexpr int kBlocks = 50;

/// Seconds before the first guess of how long everything takes.
constexpr double kFirstEta = 20;

/// A child of a comparison that was killed a moment ago may still be about to die.
void wait_for_lock(const RunPaths& paths) {
  for (int attempt = 0; attempt < 50 && fs::exists(paths.folder); ++attempt) {
    try {
      const RunLock lock(paths);
      return;
    } catch (const RunError&) {
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
    }
  }
}

/// What a child does: everything that is missing of one run.
void finish_run(const PlannedRun& planned,
                const ComparisonRun& comparison,
                const LoopHooks& hooks) {
  const ComparisonWork& work = comparison.work;
  const std::string& program = comparison.program;
  // What is measured here is told apart from the evaluations of training.
  LoopHooks measuring = hooks;
  measuring.progress = [&hooks](Progress progress) {
    if (progress.phase == "eval") progress.phase = "measure";
    hooks.show(progress);
  };
  const RunPaths paths{planned.folder};
  wait_for_lock(paths);
  if (!fs::exists(paths.config())) {
    start_run({.paths = paths, .options = planned.options, .program = program, .hooks = hooks});
  } else if (!state_of(planned, work).is_trained) {
    resume_run({.paths = paths, .program = program, .hooks = hooks});
  }
  RunState state = state_of(planned, work);
  if (state.is_whole()) return;
  const RunLock lock(paths);
  LoadedRun loaded =
      load_run({.folder = paths.folder, .step = planned.options.train.steps, .hooks = hooks});
  const auto assignments = [&](const std::vector<std::string>& more) {
    std::vector<std::string> all = {"split=" + work.split, fmt::format("blocks={}", kBlocks)};
    if (!work.method.empty()) all.push_back("method=" + work.method);
    all.insert(all.end(), more.begin(), more.end());
    return all;
  };
  if (state.lacks_clean) {
    evaluate_run(
        {.run = loaded, .assignments = assignments({"metric_profile=true"}), .hooks = measuring});
    state = state_of(planned, work);
  }
  std::vector<std::string> fewer;
  if (work.num_pictures > 0) fewer = {fmt::format("max_pictures={}", work.num_pictures)};
  for (const measure::ChosenDamage& damage : state.damages) {
    std::vector<std::string> all = damage.assignments;
    all.insert(all.end(), fewer.begin(), fewer.end());
    evaluate_run({.run = loaded, .assignments = assignments(all), .hooks = measuring});
  }
  if (state.attacks.empty()) return;
  AttackPlan plan = work.attacks;
  plan.cases = state.attacks;
  attack_run({.run = loaded,
              .plan = plan,
              .assignments = assignments(fewer),
              .program = program,
              .hooks = hooks});
}

void check_folder(const PlannedRun& planned) {
  const RunPaths paths{planned.folder};
  const char* const advice = "(move it away, or choose another folder with --run)";
  // Its user named the folder of the comparison; a link in it would name another run.
  if (fs::is_symlink(fs::symlink_status(planned.folder))) {
    throw RunError(fmt::format("{}: must be a folder itself, is a symbolic link {}",
                               planned.folder.string(), advice));
  }
  if (!fs::exists(paths.config())) {
    check_new(paths);
    return;
  }
  RunOptions wanted = planned.options, existing;
  try {
    read_config(paths, existing);
  } catch (const ConfigError& error) {
    throw RunError(fmt::format("{}: must hold the run \"{}\", holds something else: {} {}",
                               planned.folder.string(), planned.title(), error.what(), advice));
  }
  std::vector<std::string> changes = differences(fields_of(wanted), fields_of(existing));
  if (planned.value_of) {
    std::erase_if(changes, [](const std::string& line) {
      return line.starts_with("task.model.attention.metric.value:");
    });
  }
  if (changes.empty()) return;
  throw RunError(fmt::format("{}: must hold the run \"{}\" as it is asked for, differs in {} {}",
                             planned.folder.string(), planned.title(), changes.front(), advice));
}

class Runner {
 public:
  explicit Runner(const ComparisonRun& comparison)
      : comparison_(comparison), work_(comparison.work), plan_(comparison.work.plan) {
    for (const PlannedRun& planned : plan_) {
      states_.push_back(state_of(planned, work_));
    }
    for (size_t i = 0; i < plan_.size(); ++i) {
      if (needs_work(i)) waiting_.push_back(i);
    }
    num_todo_ = waiting_.size();
    for (const PlannedRun& planned : plan_) {
      eval_steps_.push_back(eval_steps(planned, work_));
    }
    for (const size_t i : waiting_) {
      left_at_start_ += work_left(i);
      num_evaluations_ += states_[i].num_evaluations();
    }
  }

  bool run();

 private:
  bool needs_work(size_t i) const {
    const bool lacks_metric = !states_[i].metric_mean && is_source(i);
    return !states_[i].is_whole() || lacks_metric;
  }
  bool is_source(size_t i) const {
    return std::any_of(plan_.begin(), plan_.end(),
                       [&](const PlannedRun& planned) { return planned.value_of == i; });
  }
  /// In steps of training; measuring by blocks counts as a part of it.
  double work_left(size_t i) const {
    const RunState& state = states_[i];
    const double steps = static_cast<double>(plan_[i].options.train.steps);
    const double evaluations =
        std::max(0.0, static_cast<double>(state.num_evaluations()) - state.parts_measured);
    return steps * (1.05 - std::min(state.part_trained, 1.0)) + eval_steps_[i] * evaluations +
           attack_steps(state.attacks, plan_[i], work_.num_pictures) * (1 - state.part_attacked);
  }
  std::string place(size_t i) const {
    return fmt::format("run {} of {}: {}", i + 1, plan_.size(), plan_[i].title());
  }
  void start_some();
  void start(size_t i);
  void fail(size_t i, const std::string& why);
  void take(const JobEvent& event);
  void show(size_t i, Progress progress);
  double seconds_left() const;

  const ComparisonRun& comparison_;
  const ComparisonWork& work_;
  std::vector<PlannedRun> plan_;
  std::vector<RunState> states_;
  std::vector<size_t> waiting_;
  std::map<size_t, Clock::time_point> running_;
  std::set<std::string> data_told_;
  Jobs jobs_;
  std::vector<double> eval_steps_;  ///< of one evaluation of each run
  size_t num_todo_ = 0, num_done_ = 0, num_evaluations_ = 0;
  double left_at_start_ = 0;
  Clock::time_point begin_ = Clock::now();
  bool has_failed_ = false;
  int fatal_status_ = 0;
  std::string fatal_error_;
};

bool Runner::run() {
  const SignalGuard signals;
  const size_t num_whole = plan_.size() - num_todo_;
  if (num_whole > 0) {
    comparison_.hooks.say(fmt::format("{} of {} runs are there already", num_whole, plan_.size()));
  }
  if (const std::string cost = eval_cost_text(work_, num_evaluations_); !cost.empty()) {
    comparison_.hooks.say(cost);
  }
  bool asked = false;
  while (true) {
    const bool stopping = stop_signal() != 0 || fatal_status_ != 0;
    if (!stopping) start_some();
    if (running_.empty()) break;
    if (stopping && !asked) {
      jobs_.ask_to_stop();
      asked = true;
    }
    for (const JobEvent& event : jobs_.wait(std::chrono::milliseconds(500))) take(event);
  }
  if (fatal_status_ == 2) throw ConfigError(fatal_error_);
  if (fatal_status_ == 3) throw SetupError(fatal_error_);
  if (const int signal = stop_signal(); signal != 0) {
    throw Interrupted(
        fmt::format("compare: stopped by {}, {} of {} runs are whole, what was begun is saved "
                    "(go on: the same command again)",
                    signal_name(signal), num_whole + num_done_, plan_.size()),
        signal);
  }
  return !has_failed_;
}

/// Starts the first runs that can be started, as many as may run at once.
void Runner::start_some() {
  for (auto it = waiting_.begin();
       it != waiting_.end() && running_.size() < static_cast<size_t>(work_.num_jobs);) {
    const size_t i = *it;
    const auto source = plan_[i].value_of;
    const bool is_pending =
        source && (running_.contains(*source) ||
                   std::find(waiting_.begin(), waiting_.end(), *source) != waiting_.end());
    if (is_pending) {
      ++it;
      continue;
    }
    it = waiting_.erase(it);
    if (source && !states_[*source].metric_mean) {
      fail(i, fmt::format("needs the mean of the metric of {}, which is not there",
                          plan_[*source].title()));
      continue;
    }
    try {
      start(i);
    } catch (const RunError& error) {
      fail(i, error.what());
    }
  }
}

void Runner::start(size_t i) {
  PlannedRun& planned = plan_[i];
  std::string more;
  if (planned.value_of) {
    const double mean = *states_[*planned.value_of].metric_mean;
    planned.options = with_value(planned, mean);
    planned.value_of.reset();
    more = fmt::format(" (metric {:.4g})", planned.value_factor * mean);
  }
  check_folder(planned);
  comparison_.hooks.say(place(i) + more);
  const int cores = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
  const int all = work_.num_threads > 0 ? work_.num_threads : cores;
  jobs_.start(i, [this, i, all](const LoopHooks& hooks) {
    at::set_num_threads(std::max(1, all / work_.num_jobs));
    finish_run(plan_[i], comparison_, hooks);
  });
  running_.emplace(i, Clock::now());
}

void Runner::fail(size_t i, const std::string& why) {
  has_failed_ = true;
  comparison_.hooks.say(place(i) + ": failed: " + why);
}

void Runner::take(const JobEvent& event) {
  const size_t i = event.job;
  if (!event.notice.empty()) comparison_.hooks.say(plan_[i].title() + ": " + event.notice);
  // All runs read the same data: once is enough.
  if (data_told_.insert(event.data).second) comparison_.hooks.describe(event.data);
  if (event.progress) {
    const double part = static_cast<double>(event.progress->done) /
                        static_cast<double>(std::max<int64_t>(event.progress->total, 1));
    if (event.progress->phase == "train") states_[i].part_trained = part;
    if (event.progress->phase == "attack") states_[i].part_attacked = part;
    if (event.progress->phase == "measure") {
      double& parts = states_[i].parts_measured;
      // One evaluation follows the other: where it starts again, the one before is whole.
      parts = part < parts - std::floor(parts) ? std::floor(parts) + 1 + part
                                               : std::floor(parts) + part;
    }
    // The last unit of a piece of work needs no line of its own in a log: more follows.
    const bool is_last = event.progress->done == event.progress->total;
    if (i == running_.begin()->first && !is_last) show(i, *event.progress);
  }
  if (!event.status) return;
  const std::chrono::duration<double> took = Clock::now() - running_.at(i);
  running_.erase(i);
  if (*event.status == 0) {
    states_[i] = state_of(plan_[i], work_);
    if (needs_work(i)) {
      fail(i, fmt::format("its records lack what was measured (move {} away, it is trained anew)",
                          plan_[i].folder.string()));
      return;
    }
    ++num_done_;
    comparison_.hooks.say(
        fmt::format("{}: done in {}{}", place(i), duration_text(took.count()),
                    num_done_ < num_todo_ ? ", ETA " + duration_text(seconds_left()) : ""));
  } else if (*event.status == 2 || *event.status == 3) {
    fatal_status_ = *event.status;
    fatal_error_ = event.error;
  } else if (stop_signal() == 0 && fatal_status_ == 0) {
    fail(i, event.error);
  }
}

double Runner::seconds_left() const {
  double left = 0;
  for (const size_t i : waiting_) left += work_left(i);
  for (const auto& [i, start] : running_) left += work_left(i);
  const std::chrono::duration<double> elapsed = Clock::now() - begin_;
  const double done = left_at_start_ - left;
  // At first most of the time went into reading data: that says nothing about the rest.
  const bool is_known = done > 0 && elapsed.count() > kFirstEta;
  return is_known ? elapsed.count() / done * left : -1;
}

/// One line for all: the run that began first, and how long everything takes.
void Runner::show(size_t i, Progress progress) {
  const std::string others =
      running_.size() > 1 ? fmt::format(" (+{})", running_.size() - 1) : std::string();
  const char* const doing = progress.phase == "eval" || progress.phase == "measure" ? ", measuring"
                            : progress.phase == "attack"                            ? ", attacking"
                                                                                    : "";
  progress.phase = place(i) + others + doing;
  progress.seconds_left = seconds_left();
  comparison_.hooks.show(progress);
}

}  // namespace

void check_folders(const std::vector<PlannedRun>& plan) {
  for (const PlannedRun& planned : plan) check_folder(planned);
}

bool carry_out(const ComparisonRun& comparison) { return Runner(comparison).run(); }

}  // namespace elliptical::run
