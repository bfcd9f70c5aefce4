// SPDX-License-Identifier: MIT
//
// A libFuzzer program for one target; which one is set where it is compiled (tools/fuzz).
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "tests/fuzz/targets.h"

extern "C" size_t LLVMFuzzerMutate(uint8_t* bytes, size_t size, size_t max_size);

namespace {

const elliptical::test::FuzzTarget& target() {
  static const elliptical::test::FuzzTarget& chosen = *std::find_if(
      elliptical::test::fuzz_targets().begin(), elliptical::test::fuzz_targets().end(),
      [](const auto& each) { return std::string_view(each.name) == ELLIPTICAL_FUZZ_TARGET; });
  return chosen;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  target().run({reinterpret_cast<const char*>(bytes), size});
  return 0;
}

/// Half of the time the damage of the format, else libFuzzer's own.
extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* bytes,
                                          size_t size,
                                          size_t max_size,
                                          unsigned int seed) {
  if (target().damage == nullptr || seed % 2 == 0) return LLVMFuzzerMutate(bytes, size, max_size);
  elliptical::RandomStream random{elliptical::RandomKey(seed)};
  const std::string damaged = target().damage({reinterpret_cast<const char*>(bytes), size}, random);
  if (damaged.size() > max_size) return LLVMFuzzerMutate(bytes, size, max_size);
  std::copy(damaged.begin(), damaged.end(), bytes);
  return damaged.size();
}
