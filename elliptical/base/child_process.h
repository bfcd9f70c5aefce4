// SPDX-License-Identifier: MIT
//
// Programs that ours runs: pip, npm, peers of benchmarks. They see as little as possible of where
// the user happens to be. They run in `/`, because Python, pip and npm take modules and settings
// from the current folder and the ones above it, and without the variables that make Python and
// Node load other code. Python itself is to be given -I as well. How long their threads wait is
// their own business, too.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace elliptical {

/// Is set when GOMP_SPINCOUNT was not set by the user, but by the program for itself
/// (cli/short_waits.h).
inline constexpr char kOwnWaitsVariable[] = "ELLIPTICAL_OWN_WAITS";

/// Starts a program with these descriptors as its standard input and output; its number, or 0 when
/// it can not be started. A relative path to the program is one from the current folder; a relative
/// path in its arguments would be one from `/`.
pid_t start_child(std::vector<std::string> words, int input, int output);

/// The exit status of a child: 127 for one that was not started (0 or less), 128 + signal for one
/// that was killed.
int wait_for_child(pid_t child);

}  // namespace elliptical
