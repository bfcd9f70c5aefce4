// SPDX-License-Identifier: MIT
//
// One function per parser of foreign bytes, for fuzzers and for the replay of what they found:
// takes any bytes, may throw nothing, and aborts when the parser does something it promises not to
// do. An error of the type that the parser promises is fine.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "elliptical/base/random.h"

namespace elliptical::test {

struct FuzzTarget {
  const char* name;
  void (*run)(std::string_view bytes);
  /// Valid bytes, damaged in one place that the format has a word for (damage.h); null where bytes
  /// alone find their way.
  std::string (*damage)(std::string_view bytes, RandomStream& random) = nullptr;
};

/// Their names are also folders of tests/fixtures/corpus.
const std::vector<FuzzTarget>& fuzz_targets();

/// Those of targets.cpp: data, recipes, benches. Those of run_targets.cpp: run folders.
std::vector<FuzzTarget> parser_targets();
std::vector<FuzzTarget> run_targets();

/// Runs it on one input, which may take a second of processor time.
void run_target(const FuzzTarget& target, std::string_view bytes);

/// Ends the process with what was promised.
void require(bool condition, const char* what);

/// True when `action` ends or throws the error it may throw.
template <class Error, class Action>
bool succeeds(Action action) {
  try {
    action();
    return true;
  } catch (const Error&) {
    return false;
  }
}

}  // namespace elliptical::test
