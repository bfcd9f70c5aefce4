// SPDX-License-Identifier: MIT
//
// A folder of its own for each test, and a training run of the toy task in it.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "elliptical/run/train.h"
#include "tests/run/toy_task.h"
#include "tests/support/lines.h"
#include "tests/support/temporary_folder.h"

namespace elliptical::run::testing {

class RunTest : public ::testing::Test {
 protected:
  ~RunTest() override;

  RunPaths paths(const std::string& name) const { return {root_ / name}; }

  /// Makes the run and trains it to its end, or continues it.
  void start(const std::string& name, const RunOptions& options);
  void resume(const std::string& name, const RunOptions& options);

  /// Weights, moments, average and task state of a run's newest checkpoint as one string of bytes.
  std::string state_bytes(const std::string& name) const;

  const test::TemporaryFolder folder_;
  const fs::path root_ = folder_.path();
  std::vector<std::string> notices_;  ///< of all runs
};

using test::any_contains;

/// The message of what `function` throws, which must be an Error.
template <class Error, class Function>
std::string message_of(const Function& function) {
  try {
    function();
  } catch (const Error& error) {
    return error.what();
  }
  ADD_FAILURE() << "nothing was thrown";
  return "";
}

}  // namespace elliptical::run::testing
