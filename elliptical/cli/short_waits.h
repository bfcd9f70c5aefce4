// SPDX-License-Identifier: MIT
//
// How long a thread that waits for others spins before it sleeps. torch's threads are those of
// GNU's OpenMP library, which spins for milliseconds: beside a busy program the processor is spent
// on waiting for a thread that does not run, and training takes many times as long. The library
// takes this from the environment when it is loaded, before main; so the program, unless the user
// has said how to wait, starts itself again with a short time.
#pragma once

#include <string>

namespace elliptical::cli {

/// Comes back only if there is nothing to do, or nothing can be done. To be called from
/// .preinit_array, with what such functions are given: before any library has been initialised, so
/// that nothing has been opened, printed or started that could be lost. Uses neither the heap nor
/// `environ`.
void start_again_with_short_waits(char** argv, char** envp);

/// How threads of this process wait, in words for `info`.
std::string describe_waits();

}  // namespace elliptical::cli
