// SPDX-License-Identifier: MIT
#include "elliptical/run/signals.h"

#include <unistd.h>

namespace elliptical::run {
namespace {

constexpr std::array<int, 4> kSignals = {SIGINT, SIGTERM, SIGHUP, SIGUSR1};

// The only thing a handler may touch.
volatile sig_atomic_t first_stop = 0;
volatile sig_atomic_t save_requested = 0;

void on_signal(int number) {
  if (number == SIGUSR1) {
    save_requested = 1;
  } else if (first_stop == 0) {
    first_stop = number;
  } else if (number == SIGINT) {
    _exit(128 + SIGINT);
  }
}

}  // namespace

SignalGuard::SignalGuard() {
  first_stop = 0;
  save_requested = 0;
  struct sigaction action = {};
  action.sa_handler = on_signal;
  action.sa_flags = SA_RESTART;
  sigemptyset(&action.sa_mask);
  for (size_t i = 0; i < kSignals.size(); ++i) {
    sigaction(kSignals[i], nullptr, &before_[i]);
    if (before_[i].sa_handler != SIG_IGN) sigaction(kSignals[i], &action, nullptr);
  }
}

SignalGuard::~SignalGuard() {
  for (size_t i = 0; i < kSignals.size(); ++i) sigaction(kSignals[i], &before_[i], nullptr);
  first_stop = 0;
}

int stop_signal() { return first_stop; }

bool take_save_request() {
  const bool requested = save_requested != 0;
  save_requested = 0;
  return requested;
}

const char* signal_name(int number) {
  switch (number) {
    case SIGINT:
      return "SIGINT";
    case SIGTERM:
      return "SIGTERM";
    case SIGHUP:
      return "SIGHUP";
    case SIGUSR1:
      return "SIGUSR1";
    default:
      return "signal";
  }
}

}  // namespace elliptical::run
