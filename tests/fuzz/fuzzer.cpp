// SPDX-License-Identifier: MIT
//
// The libFuzzer program; ELLIPTICAL_FUZZ_TARGET in the environment names its target (tools/fuzz).
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "tests/fuzz/targets.h"

extern "C" size_t LLVMFuzzerMutate(uint8_t* bytes, size_t size, size_t max_size);

namespace {

const elliptical::test::FuzzTarget& target() {
  static const elliptical::test::FuzzTarget& chosen = []() -> const auto& {
    const char* name = std::getenv("ELLIPTICAL_FUZZ_TARGET");
    const auto& all = elliptical::test::fuzz_targets();
    const auto found = std::find_if(all.begin(), all.end(), [&](const auto& each) {
      return name != nullptr && std::string_view(each.name) == name;
    });
    elliptical::test::require(found != all.end(), "ELLIPTICAL_FUZZ_TARGET names a target");
    return *found;
  }();
  return chosen;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  elliptical::test::run_target(target(), {reinterpret_cast<const char*>(bytes), size});
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
