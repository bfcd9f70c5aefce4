// SPDX-License-Identifier: MIT
//
// One function per parser of foreign bytes, for fuzzers and for the replay of what they found:
// takes any bytes, may throw nothing, and aborts when the parser does something it promises not to
// do. An error of the type that the parser promises is fine.
#pragma once

#include <string_view>
#include <vector>

namespace elliptical::test {

struct FuzzTarget {
  const char* name;
  void (*run)(std::string_view bytes);
};

/// Their names are also folders of tests/fixtures/corpus.
const std::vector<FuzzTarget>& fuzz_targets();

}  // namespace elliptical::test
