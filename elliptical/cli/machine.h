// SPDX-License-Identifier: MIT
//
// What a measurement depends on beside the program's arguments: every record carries it.
#pragma once

#include <string>
#include <vector>

namespace elliptical::cli {

struct Machine {
  std::string cpu;                    ///< model name
  std::vector<std::string> features;  ///< instruction sets of interest that the CPU reports
  int num_cores = 0;                  ///< logical processors this process may use
  int num_threads = 0;                ///< threads torch uses
  std::string torch_version;
  std::vector<std::string> simd_compiled;  ///< targets compiled into our kernels, best first
  std::vector<std::string> simd_runnable;  ///< those this CPU can run
  std::string simd;                        ///< the one in use
};

Machine this_machine();

}  // namespace elliptical::cli
