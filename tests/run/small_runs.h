// SPDX-License-Identifier: MIT
//
// Runs of the smallest language model, trained by the functions that the program calls.
#pragma once

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "elliptical/run/load_run.h"
#include "elliptical/run/start_run.h"
#include "tests/support/temporary_folder.h"

namespace elliptical::run::testing {

class SmallRunTest : public ::testing::Test {
 protected:
  RunPaths paths(const std::string& name) const { return {root_ / name}; }
  LoopHooks hooks();

  /// Four steps with checkpoints of the last and of step 2; `changes` are "a.b=c".
  RunPaths start(const std::string& name, const std::vector<std::string>& changes = {});
  /// `request` without what is the same in each test.
  RunPaths fork(const std::string& name, ForkRequest request);
  LoadedRun load(const RunPaths& run,
                 int64_t step = -1,
                 std::optional<Weights> weights = std::nullopt);

  const test::TemporaryFolder folder_;
  const fs::path root_ = folder_.path();
  std::vector<std::string> notices_, data_;  ///< what hooks were told
};

}  // namespace elliptical::run::testing
