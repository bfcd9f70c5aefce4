// SPDX-License-Identifier: MIT
//
// Mistakes of the user, told apart from faults of ours by their type. A message has the form
// `subject: what must hold, what was given (what to do)`; the program prints it on one line and
// takes its exit status from the type.
#pragma once

#include <stdexcept>

namespace elliptical {

/// A command line that makes no sense: unknown command, option or value. Exit status 2.
struct UsageError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

}  // namespace elliptical
