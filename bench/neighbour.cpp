// SPDX-License-Identifier: MIT
#include "bench/neighbour.h"

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <functional>
#include <memory>
#include <stdexcept>
#include <thread>

#include "bench/contestant.h"
#include "bench/problem.h"

namespace elliptical::bench {
namespace {

/// Several turns of the scheduler.
constexpr std::chrono::milliseconds kSettle{20};

[[noreturn]] void be_busy() {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  // As what runs in another terminal: Linux shares processors between sessions first.
  setsid();
  for (volatile unsigned count = 0;;) count = count + 1;
}

}  // namespace

Neighbour::Neighbour() : pid_(fork()) {
  if (pid_ == 0) be_busy();
  if (pid_ < 0) throw std::runtime_error("bench: the neighbour must be a process, none was given");
  set_busy(false);
}

Neighbour::~Neighbour() {
  kill(pid_, SIGKILL);
  waitpid(pid_, nullptr, 0);
}

void Neighbour::set_busy(bool busy) {
  kill(pid_, busy ? SIGCONT : SIGSTOP);
  std::this_thread::sleep_for(kSettle);
}

std::vector<NeighbourResult> measure_neighbour(const TrainingCase& shape,
                                               const AttentionCase& attention,
                                               int repeats,
                                               const ProgressFn& progress) {
  const auto trainer = make_our_trainer(shape, "elliptical");
  const Problem problem(attention);
  const auto ours = make_ours(problem);
  double loss = 0;
  const std::function<double()> works[] = {[&] { return trainer->step(loss); },
                                           [&] { return ours->time(Pass::kForward); }};
  std::vector<NeighbourResult> results = {{.what = "training"}, {.what = "attention"}};

  Neighbour neighbour;
  const auto timings = take_turns(
      2 * results.size(), {.repeats = repeats, .what = "beside a neighbour", .progress = progress},
      [&](size_t turn) {
        neighbour.set_busy(turn % 2 == 1);
        works[turn / 2]();  // the first one finds threads and caches as the other case left them
        return works[turn / 2]();
      });
  for (size_t i = 0; i < results.size(); ++i) {
    results[i].quiet = timings[2 * i];
    results[i].beside = timings[2 * i + 1];
  }
  return results;
}

}  // namespace elliptical::bench
