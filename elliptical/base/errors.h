// SPDX-License-Identifier: MIT
//
// Mistakes of the user, told apart from faults of ours by their type. A message has the form
// `subject: what must hold, what was given (what to do)`; the program prints it on one line and
// takes its exit status from the type.
#pragma once

#include <stdexcept>
#include <string>

namespace elliptical {

/// A command line that makes no sense: unknown command, option or value. Exit status 2.
struct UsageError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// A recipe or an override that makes no sense; names file and line where there are any. Exit
/// status 2.
struct ConfigError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// A file whose contents are not what they must be: data, weights, records. Names the file and,
/// where there is one, the line or the offset. Exit status 1.
struct DataError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Something that must be installed or fetched first; says how. Exit status 3.
struct SetupError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// The system refused to write, rename or delete a file; `code` is its errno (ENOSPC: disk full).
/// Exit status 1.
struct FileError : std::runtime_error {
  FileError(const std::string& what, int number) : std::runtime_error(what), code(number) {}
  int code;
};

/// A run folder that can not be used as asked: locked, of another program, changed. Exit status 1.
struct RunError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Work that stopped early because a signal asked for it, after saving what there was to save.
/// Exit status 128 + signal.
struct Interrupted : std::runtime_error {
  Interrupted(const std::string& what, int number) : std::runtime_error(what), signal(number) {}
  int signal;
};

/// The exit status that the program has for an exception.
inline int exit_status(const std::exception& error) {
  if (const auto* interrupted = dynamic_cast<const Interrupted*>(&error)) {
    return 128 + interrupted->signal;
  }
  const bool is_usage = dynamic_cast<const UsageError*>(&error) != nullptr ||
                        dynamic_cast<const ConfigError*>(&error) != nullptr;
  if (is_usage) return 2;
  return dynamic_cast<const SetupError*>(&error) != nullptr ? 3 : 1;
}

}  // namespace elliptical
