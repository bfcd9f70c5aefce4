// SPDX-License-Identifier: MIT
//
// A libFuzzer program for one target; which one is set where it is compiled (tools/fuzz).
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "tests/fuzz/targets.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  for (const elliptical::test::FuzzTarget& target : elliptical::test::fuzz_targets()) {
    if (std::string_view(target.name) == ELLIPTICAL_FUZZ_TARGET) {
      target.run({reinterpret_cast<const char*>(bytes), size});
    }
  }
  return 0;
}
