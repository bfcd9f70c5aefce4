// SPDX-License-Identifier: MIT
//
// Who may use a run folder. Fault ID: C8.
#include "elliptical/run/run_folder.h"

#include <unistd.h>

#include <fstream>

#include "elliptical/base/errors.h"
#include "elliptical/base/files.h"
#include "tests/run/run_fixture.h"

namespace elliptical::run::testing {
namespace {

using RunFolderTest = RunTest;

TEST_F(RunFolderTest, C8SecondUserIsRefusedAndToldWhoHasIt) {
  const RunLock lock = create_run_folder(paths("a"));
  const std::string message = message_of<RunError>([&] { RunLock second(paths("a")); });
  EXPECT_EQ(message, paths("a").folder.string() + ": is in use by process " +
                         std::to_string(getpid()) + " (wait for it or stop it)");
}

TEST_F(RunFolderTest, C8AnAttackAndATrainingHaveLocksOfTheirOwn) {
  fs::create_directories(paths("a").folder);
  const RunLock training(paths("a"));
  const FileLock attacking(paths("a").attack_lock(), paths("a").folder);
  EXPECT_EQ(message_of<RunError>([&] {
              const FileLock second(paths("a").attack_lock(), paths("a").folder);
            }),
            paths("a").folder.string() + ": is in use by process " + std::to_string(getpid()) +
                " (wait for it or stop it)");
}

TEST_F(RunFolderTest, C8ALockFileAloneLocksNothing) {
  fs::create_directory(paths("a").folder);
  std::ofstream(paths("a").lock()) << "99999\n";
  {
    const RunLock lock(paths("a"));
  }
  const RunLock again(paths("a"));
  EXPECT_EQ(read_file(paths("a").lock()), std::to_string(getpid()) + "\n");
}

TEST_F(RunFolderTest, ANewRunNeedsANewOrEmptyFolder) {
  {
    const RunLock lock = create_run_folder(paths("a"));
    write_config(paths("a"), "seed = 1\n");
  }
  EXPECT_NE(message_of<RunError>([&] {
              create_run_folder(paths("a"));
            }).find("holds a run already (continue it: elliptical resume"),
            std::string::npos);
  fs::create_directory(root_ / "b");
  std::ofstream(root_ / "b" / "thesis.tex") << "x";
  EXPECT_NE(message_of<RunError>([&] {
              create_run_folder(paths("b"));
            }).find("must be new or empty, holds thesis.tex"),
            std::string::npos);
  EXPECT_TRUE(fs::exists(root_ / "b" / "thesis.tex"));
}

TEST_F(RunFolderTest, AStartThatDiedBeforeTheRunExistedIsNoObstacle) {
  {
    const RunLock lock = create_run_folder(paths("a"));
  }
  fs::create_directory(paths("a").checkpoints() / "step-3");
  const RunLock lock = create_run_folder(paths("a"));
  EXPECT_TRUE(fs::is_empty(paths("a").checkpoints()));
}

TEST_F(RunFolderTest, WhatIsNoRunIsSaid) {
  EXPECT_NE(
      message_of<RunError>([&] { find_run(root_ / "nowhere"); }).find("there is no such folder"),
      std::string::npos);
  EXPECT_NE(message_of<RunError>([&] { find_run(root_); }).find("has no config.toml"),
            std::string::npos);
  std::ofstream(root_ / "file") << "x";
  EXPECT_NE(message_of<RunError>([&] { create_run_folder(paths("file")); }).find("could not be"),
            std::string::npos);
}

TEST_F(RunFolderTest, TheNameOfARunIsItsFolder) {
  EXPECT_EQ(RunPaths{"/tmp/runs/softmax"}.name(), "softmax");
  EXPECT_EQ(RunPaths{"/tmp/runs/softmax/"}.name(), "softmax");
  EXPECT_EQ(RunPaths{"runs/../x/."}.name(), "x");
}

}  // namespace
}  // namespace elliptical::run::testing
