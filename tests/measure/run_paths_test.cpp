// SPDX-License-Identifier: MIT
#include "elliptical/measure/run_paths.h"

#include <gtest/gtest.h>

namespace elliptical::measure {
namespace {

TEST(RunPaths, LieInTheFolder) {
  const RunPaths paths{"runs/a"};
  EXPECT_EQ(paths.records(), "runs/a/records.jsonl");
  EXPECT_EQ(paths.config(), "runs/a/config.toml");
  EXPECT_EQ(paths.attack_pictures(), "runs/a/attack.safetensors");
}

TEST(RunPaths, AreCalledAsTheFolderIs) {
  EXPECT_EQ(RunPaths{"runs/a"}.name(), "a");
  EXPECT_EQ(RunPaths{"runs/a/"}.name(), "a");
  EXPECT_EQ(RunPaths{"runs/b/../a"}.name(), "a");
}

}  // namespace
}  // namespace elliptical::measure
