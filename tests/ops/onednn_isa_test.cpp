// SPDX-License-Identifier: MIT
//
// oneDNN is kept off AMX exactly where a hypervisor hides what oneDNN needs to know.
#include "elliptical/ops/onednn_isa_impl.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cstdlib>

namespace elliptical::ops {
namespace {

constexpr uint32_t kAmxTile = 1u << 24;

TEST(OnednnIsa, IsLimitedWhereTheTilePaletteIsHidden) {
  EXPECT_EQ(onednn_isa_limit({.leaf7_edx = kAmxTile, .leaf1d_eax = 0}), "AVX512_CORE_BF16");
}

TEST(OnednnIsa, IsLeftAloneEverywhereElse) {
  EXPECT_EQ(onednn_isa_limit({.leaf7_edx = kAmxTile, .leaf1d_eax = 1}), std::nullopt);
  EXPECT_EQ(onednn_isa_limit({.leaf7_edx = 0, .leaf1d_eax = 0}), std::nullopt);
  EXPECT_EQ(onednn_isa_limit({.leaf7_edx = kAmxTile, .leaf1d_eax = 0, .user_decided = true}),
            std::nullopt);
}

TEST(OnednnIsa, WasAppliedWhenTheLibraryWasLoaded) {
  AmxReport report = read_amx_report();
  const char* variable = std::getenv("ONEDNN_MAX_CPU_ISA");
  report.user_decided = false;
  if (onednn_isa_limit(report)) {
    EXPECT_NE(variable, nullptr);
  }
  // Dies of an illegal instruction where the limit is needed and missing.
  const at::Tensor a = torch::ones({64, 64}, torch::kBFloat16);
  EXPECT_EQ(a.matmul(a)[0][0].item<float>(), 64.0f);
}

}  // namespace
}  // namespace elliptical::ops
