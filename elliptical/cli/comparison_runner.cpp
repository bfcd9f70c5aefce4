// SPDX-License-Identifier: MIT
#include "elliptical/cli/comparison_runner.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <thread>

#include "elliptical/base/config.h"
#include "elliptical/base/errors.h"
#include "elliptical/cli/session.h"
#include "elliptical/report/measurement.h"
#include "elliptical/run/jobs.h"
#include "elliptical/run/signals.h"
#include "elliptical/run/train.h"

namespace elliptical::cli {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

/// Parts of the data that are recorded apart: enough for a bootstrap over them.
constexpr int kBlocks = 50;

/// What of a planned run is there already.
struct RunState {
  bool is_trained = false;
  std::optional<double> metric_mean;
  bool lacks_clean = true, lacks_damaged = true;  ///< evaluations to be done
  double part_trained = 0;
  bool is_whole() const { return is_trained && !lacks_clean && !lacks_damaged; }
};

bool is_of_training(const Record& record) { return report::label_text(record, "source") != "eval"; }

RunState state_of(const run::PlannedRun& planned, const ComparisonWork& work) {
  RunState state{.lacks_damaged = !work.damage.empty()};
  const run::RunPaths paths{planned.folder};
  const int64_t last = planned.options.train.steps;
  const std::vector<int64_t> steps = run::checkpoint_steps(paths.checkpoints());
  if (steps.empty() || !fs::exists(paths.config())) return state;
  state.part_trained =
      static_cast<double>(steps.back()) / static_cast<double>(std::max<int64_t>(last, 1));

  const report::RunData data{.folder = paths.folder, .records = read_records(paths.records())};
  const auto is_last = [&](const Record& record) {
    return is_of_training(record) && report::label_text(record, "step") == std::to_string(last) &&
           report::is_clean_measure(record);
  };
  const auto validation = std::find_if(data.records.begin(), data.records.end(), is_last);
  state.is_trained = steps.back() == last && (last == 0 || validation != data.records.end());
  state.metric_mean = run::measured_metric_mean(data.records, last);
  const std::string reading =
      validation == data.records.end() ? "" : report::circumstances_of(*validation).reading;
  for (const auto& [circumstances, by_measure] : report::measurements_at(data, last)) {
    const bool is_asked = circumstances.split == work.split && circumstances.reading == reading;
    const bool is_whole = std::all_of(by_measure.begin(), by_measure.end(), [](const auto& entry) {
      return !entry.second.blocks.empty();
    });
    if (!is_asked || !is_whole) continue;
    if (circumstances.num_pictures > 0) continue;
    if (circumstances.condition == report::Condition::kClean) state.lacks_clean = false;
    if (circumstances.condition == report::Condition::kDamaged &&
        circumstances.strength == work.strength && circumstances.corruption == work.corruption) {
      state.lacks_damaged = false;
    }
  }
  return state;
}

/// A child of a comparison that was killed a moment ago may still be about to die.
void wait_for_lock(const run::RunPaths& paths) {
  for (int attempt = 0; attempt < 50 && fs::exists(paths.folder); ++attempt) {
    try {
      const run::RunLock lock(paths);
      return;
    } catch (const RunError&) {
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
    }
  }
}

/// What a child does: everything that is missing of one run.
void finish_run(const run::PlannedRun& planned,
                const ComparisonWork& work,
                const run::LoopHooks& hooks) {
  const run::RunPaths paths{planned.folder};
  wait_for_lock(paths);
  if (!fs::exists(paths.config())) {
    start_run(paths, planned.options, hooks);
  } else if (!state_of(planned, work).is_trained) {
    resume_run(paths, hooks);
  }
  const RunState state = state_of(planned, work);
  if (state.is_whole()) return;
  const run::RunLock lock(paths);
  LoadedRun loaded = load_run(paths.folder, planned.options.train.steps, hooks);
  for (const bool damaged : {false, true}) {
    if (damaged ? !state.lacks_damaged : !state.lacks_clean) continue;
    std::vector<std::string> assignments = {"split=" + work.split,
                                            fmt::format("blocks={}", kBlocks)};
    if (damaged) {
      assignments.insert(assignments.end(), work.damage.begin(), work.damage.end());
    } else {
      assignments.emplace_back("metric_profile=true");
    }
    evaluate_run(loaded, assignments, hooks);
  }
}

void check_folder(const run::PlannedRun& planned) {
  const run::RunPaths paths{planned.folder};
  if (!fs::exists(paths.config())) {
    run::check_new(paths);
    return;
  }
  const char* const advice = "(move it away, or choose another folder with --run)";
  run::RunOptions wanted = planned.options, existing;
  try {
    run::read_config(paths, existing);
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
  Runner(const ComparisonWork& work, ProgressPrinter& printer)
      : work_(work), printer_(printer), plan_(work.plan) {
    for (const run::PlannedRun& planned : plan_) states_.push_back(state_of(planned, work));
    for (size_t i = 0; i < plan_.size(); ++i) {
      if (needs_work(i)) waiting_.push_back(i);
    }
    num_todo_ = waiting_.size();
    for (const size_t i : waiting_) left_at_start_ += work_left(i);
  }

  bool run();

 private:
  bool needs_work(size_t i) const {
    const bool lacks_metric = !states_[i].metric_mean && is_source(i);
    return !states_[i].is_whole() || lacks_metric;
  }
  bool is_source(size_t i) const {
    return std::any_of(plan_.begin(), plan_.end(),
                       [&](const run::PlannedRun& planned) { return planned.value_of == i; });
  }
  /// In steps of training; measuring counts as a part of it.
  double work_left(size_t i) const {
    const double steps = static_cast<double>(plan_[i].options.train.steps);
    return steps * (1.05 - std::min(states_[i].part_trained, 1.0));
  }
  std::string place(size_t i) const {
    return fmt::format("run {} of {}: {}", i + 1, plan_.size(), plan_[i].title());
  }
  void start_some();
  void start(size_t i);
  void fail(size_t i, const std::string& why);
  void take(const run::JobEvent& event);
  void show(size_t i, run::Progress progress);
  double seconds_left() const;

  const ComparisonWork& work_;
  ProgressPrinter& printer_;
  std::vector<run::PlannedRun> plan_;
  std::vector<RunState> states_;
  std::vector<size_t> waiting_;
  std::map<size_t, Clock::time_point> running_;
  run::Jobs jobs_;
  size_t num_todo_ = 0, num_done_ = 0;
  double left_at_start_ = 0;
  Clock::time_point begin_ = Clock::now();
  bool has_failed_ = false;
  int fatal_status_ = 0;
  std::string fatal_error_;
};

bool Runner::run() {
  const run::SignalGuard signals;
  const size_t num_whole = plan_.size() - num_todo_;
  if (num_whole > 0) {
    printer_.say(fmt::format("{} of {} runs are there already", num_whole, plan_.size()));
  }
  bool asked = false;
  while (true) {
    const bool stopping = run::stop_signal() != 0 || fatal_status_ != 0;
    if (!stopping) start_some();
    if (running_.empty()) break;
    if (stopping && !asked) {
      jobs_.ask_to_stop();
      asked = true;
    }
    for (const run::JobEvent& event : jobs_.wait(std::chrono::milliseconds(500))) take(event);
  }
  if (fatal_status_ == 2) throw ConfigError(fatal_error_);
  if (fatal_status_ == 3) throw SetupError(fatal_error_);
  if (const int signal = run::stop_signal(); signal != 0) {
    throw Interrupted(
        fmt::format("compare: stopped by {}, {} of {} runs are whole, what was begun is saved "
                    "(go on: the same command again)",
                    run::signal_name(signal), num_whole + num_done_, plan_.size()),
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
  run::PlannedRun& planned = plan_[i];
  std::string more;
  if (planned.value_of) {
    const double mean = *states_[*planned.value_of].metric_mean;
    planned.options = run::with_value(planned, mean);
    planned.value_of.reset();
    more = fmt::format(" (metric {:.4g})", planned.value_factor * mean);
  }
  check_folder(planned);
  printer_.say(place(i) + more);
  const int cores = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
  const int all = work_.num_threads > 0 ? work_.num_threads : cores;
  jobs_.start(i, [this, i, all](const run::LoopHooks& hooks) {
    use_threads(std::max(1, all / work_.num_jobs));
    finish_run(plan_[i], work_, hooks);
  });
  running_.emplace(i, Clock::now());
}

void Runner::fail(size_t i, const std::string& why) {
  has_failed_ = true;
  printer_.say(place(i) + ": failed: " + why);
}

void Runner::take(const run::JobEvent& event) {
  const size_t i = event.job;
  if (!event.notice.empty()) printer_.say(plan_[i].title() + ": " + event.notice);
  if (event.progress) {
    if (event.progress->phase == "train") {
      states_[i].part_trained = static_cast<double>(event.progress->done) /
                                static_cast<double>(std::max<int64_t>(event.progress->total, 1));
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
    printer_.say(
        fmt::format("{}: done in {}{}", place(i), run::duration_text(took.count()),
                    num_done_ < num_todo_ ? ", ETA " + run::duration_text(seconds_left()) : ""));
  } else if (*event.status == 2 || *event.status == 3) {
    fatal_status_ = *event.status;
    fatal_error_ = event.error;
  } else if (run::stop_signal() == 0 && fatal_status_ == 0) {
    fail(i, event.error);
  }
}

double Runner::seconds_left() const {
  double left = 0;
  for (const size_t i : waiting_) left += work_left(i);
  for (const auto& [i, start] : running_) left += work_left(i);
  const std::chrono::duration<double> elapsed = Clock::now() - begin_;
  const double done = left_at_start_ - left;
  return done > 0 ? elapsed.count() / done * left : -1;
}

/// One line for all: the run that began first, and how long everything takes.
void Runner::show(size_t i, run::Progress progress) {
  const std::string others =
      running_.size() > 1 ? fmt::format(" (+{})", running_.size() - 1) : std::string();
  progress.phase = place(i) + others + (progress.phase == "eval" ? ", measuring" : "");
  progress.seconds_left = seconds_left();
  printer_.show(progress);
}

}  // namespace

void check_folders(const std::vector<run::PlannedRun>& plan) {
  for (const run::PlannedRun& planned : plan) check_folder(planned);
}

bool carry_out(const ComparisonWork& work, ProgressPrinter& printer) {
  return Runner(work, printer).run();
}

}  // namespace elliptical::cli
