// SPDX-License-Identifier: MIT
//
// oneDNN, torch's library for half precision products, configures AMX from CPUID leaf 0x1D. Some
// hypervisors offer AMX but hide that leaf, and the first bfloat16 product then dies of an illegal
// instruction. Where that is so, this library keeps oneDNN off AMX when it is loaded.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace elliptical::ops {

/// What the CPU says, as far as it matters here.
struct AmxReport {
  uint32_t leaf7_edx = 0;     ///< CPUID (7, 0): bit 24 is AMX-TILE
  uint32_t leaf1d_eax = 0;    ///< CPUID (0x1D, 0): largest tile palette, 0 when hidden
  bool user_decided = false;  ///< ONEDNN_MAX_CPU_ISA is set in the environment
};

AmxReport read_amx_report();

/// The value to give ONEDNN_MAX_CPU_ISA, if any.
std::optional<std::string> onednn_isa_limit(const AmxReport& report);

}  // namespace elliptical::ops
