// SPDX-License-Identifier: MIT
#include "elliptical/ops/onednn_isa_impl.h"

#include <cstdlib>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace elliptical::ops {
namespace {

constexpr const char* kVariable = "ONEDNN_MAX_CPU_ISA";

/// Runs when the library is loaded, before anything can have called oneDNN through it.
const bool kLimited = [] {
  const std::optional<std::string> limit = onednn_isa_limit(read_amx_report());
  return limit && setenv(kVariable, limit->c_str(), /*overwrite=*/0) == 0;
}();

}  // namespace

AmxReport read_amx_report() {
  AmxReport report;
#if defined(__x86_64__)
  uint32_t eax = 0, ebx = 0, ecx = 0, edx = 0;
  if (__get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx)) report.leaf7_edx = edx;
  if (__get_cpuid_count(0x1D, 0, &eax, &ebx, &ecx, &edx)) report.leaf1d_eax = eax;
#endif
  report.user_decided = std::getenv(kVariable) != nullptr;
  return report;
}

std::optional<std::string> onednn_isa_limit(const AmxReport& report) {
  constexpr uint32_t kAmxTile = 1u << 24;
  const bool has_amx = (report.leaf7_edx & kAmxTile) != 0;
  if (report.user_decided || !has_amx || report.leaf1d_eax != 0) return {};
  return "AVX512_CORE_BF16";
}

}  // namespace elliptical::ops
