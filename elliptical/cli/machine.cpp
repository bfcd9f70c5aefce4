// SPDX-License-Identifier: MIT
#include "elliptical/cli/machine.h"

#include <sched.h>
#include <torch/torch.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <sstream>
#include <string_view>

#include "elliptical/kernels/simd.h"

namespace elliptical::cli {
namespace {

/// As Linux spells them in /proc/cpuinfo.
constexpr std::array<std::string_view, 9> kFeatures = {
    "sse4_1", "avx2", "fma", "avx512f", "avx512dq", "avx512_bf16", "amx_tile", "amx_bf16", "asimd"};

/// The value of the first line `KEY : VALUE`; empty where there is none.
std::string cpuinfo(std::string_view key) {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    const size_t colon = line.find(':');
    if (!line.starts_with(key) || colon == std::string::npos) continue;
    const size_t begin = line.find_first_not_of(' ', colon + 1);
    return begin == std::string::npos ? "" : line.substr(begin);
  }
  return "";
}

std::vector<std::string> features() {
  std::istringstream flags(cpuinfo("flags") + " " + cpuinfo("Features"));
  std::vector<std::string> found;
  for (std::string flag; flags >> flag;) {
    if (std::find(kFeatures.begin(), kFeatures.end(), flag) != kFeatures.end())
      found.push_back(flag);
  }
  return found;
}

int usable_cores() {
  cpu_set_t cores;
  return sched_getaffinity(0, sizeof cores, &cores) == 0 ? CPU_COUNT(&cores) : 1;
}

}  // namespace

Machine this_machine() {
  const std::string model = cpuinfo("model name");
  return {.cpu = model.empty() ? "unknown" : model,
          .features = features(),
          .num_cores = usable_cores(),
          .num_threads = at::get_num_threads(),
          .torch_version = TORCH_VERSION,
          .simd_compiled = kernels::simd_compiled_targets(),
          .simd_runnable = kernels::simd_targets(),
          .simd = kernels::simd_target()};
}

}  // namespace elliptical::cli
