// SPDX-License-Identifier: MIT
//
// Signals as questions that a loop asks between two units of work. SIGINT, SIGTERM and SIGHUP ask
// it to save and stop, SIGUSR1 to save and go on. A second SIGINT ends the process at once: files
// are never half there, so nothing is damaged.
#pragma once

#include <signal.h>

#include <array>

namespace elliptical::run {

/// The handlers are in place while one of these lives; one at a time. A signal that was ignored
/// before (nohup) stays ignored.
class SignalGuard {
 public:
  SignalGuard();
  ~SignalGuard();
  SignalGuard(const SignalGuard&) = delete;
  SignalGuard& operator=(const SignalGuard&) = delete;

 private:
  std::array<struct sigaction, 4> before_;
};

/// The first signal that asked to stop; 0: none.
int stop_signal();

/// Whether SIGUSR1 came since the last call.
bool take_save_request();

/// "SIGINT"
const char* signal_name(int number);

}  // namespace elliptical::run
