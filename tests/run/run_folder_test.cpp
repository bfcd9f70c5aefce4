// SPDX-License-Identifier: MIT
//
// Who may use a run folder, and what a foreign one may not do. Fault IDs: C8, S3.
#include "elliptical/run/run_folder.h"

#include <torch/torch.h>
#include <unistd.h>

#include <fstream>

#include "elliptical/base/errors.h"
#include "elliptical/base/files.h"
#include "elliptical/base/records.h"
#include "elliptical/store/checkpoint.h"
#include "elliptical/store/tensor_files.h"
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
  EXPECT_EQ(message_of<RunError>(
                [&] { const FileLock second(paths("a").attack_lock(), paths("a").folder); }),
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

TEST_F(RunFolderTest, S3AForeignFolderOverwritesNothingThroughLinks) {
  const fs::path precious = folder_.write("precious", "mine");
  RunOptions options = toy_run_options(2);
  start("a", options);
  const RunPaths run = paths("a");
  const auto plant = [&](const fs::path& link, const fs::path& target) {
    fs::remove_all(link);
    fs::create_symlink(target, link);
  };
  const std::string is_link =
      ": must be a file of this folder, is a symbolic link (put a copy of the file in its place, "
      "or "
      "remove the link)";

  plant(run.lock(), precious);
  EXPECT_EQ(message_of<FileError>([&] { RunLock lock(run); }), run.lock().string() + is_link);
  fs::remove(run.lock());

  for (const fs::path& file : {run.records(), run.log(), run.attacks()}) {
    plant(file, root_ / "planted");  // a link to nothing would make the file
    EXPECT_EQ(message_of<FileError>([&] { RecordWriter writer(file); }), file.string() + is_link);
    fs::remove(file);
  }

  for (const fs::path& file : {run.config(), run.snapshot(), run.attack_pictures()}) {
    plant(file, precious);
    plant(file.string() + ".new", precious);
  }
  write_config(run, config_text(options));
  store::replace_tensors(run.snapshot(), {{"x", torch::ones({2})}});
  store::replace_tensors(run.attack_pictures(), {{"x", torch::ones({2})}});
  EXPECT_EQ(read_file(precious), "mine");
  EXPECT_FALSE(fs::exists(root_ / "planted"));
}

TEST_F(RunFolderTest, S3CheckpointsOfAnotherRunAreNotRotatedAwayThroughALink) {
  RunOptions options = toy_run_options(2);
  start("mine", options);
  start("foreign", options);
  fs::remove_all(paths("foreign").checkpoints());
  fs::create_directory_symlink(paths("mine").checkpoints(), paths("foreign").checkpoints());
  options.train.steps = 4;
  options.train.checkpoints_kept = 1;
  EXPECT_EQ(
      message_of<RunError>([&] { resume("foreign", options); }),
      paths("foreign").checkpoints().string() +
          ": must be a folder of the run itself, is a symbolic link (move the folder it points "
          "to into its place, or remove the link)");
  EXPECT_TRUE(fs::exists(paths("mine").checkpoints() / "step-2"));

  // Nor is one of them marked through a link of its own.
  const fs::path mine = paths("mine").checkpoints() / "step-2";
  const auto before = fs::last_write_time(mine / "state.json");
  fs::create_directory(root_ / "links");
  fs::create_directory_symlink(mine, root_ / "links" / "step-2");
  store::mark_evaluated(root_ / "links", 2);
  EXPECT_EQ(fs::last_write_time(mine / "state.json"), before);

  // The folder that a checkpoint is written into is not one that was there.
  fs::remove(paths("foreign").checkpoints());
  fs::create_directory(paths("foreign").checkpoints());
  const fs::path elsewhere = root_ / "elsewhere";
  fs::create_directory(elsewhere);
  for (const char* name : {"step-4.incomplete", "step-3.incomplete"}) {
    fs::create_directory_symlink(elsewhere, paths("foreign").checkpoints() / name);
  }
  resume("foreign", options);
  EXPECT_TRUE(fs::is_empty(elsewhere));
  EXPECT_TRUE(fs::is_directory(fs::symlink_status(paths("foreign").checkpoints() / "step-4")));
}

TEST_F(RunFolderTest, TheNameOfARunIsItsFolder) {
  EXPECT_EQ(RunPaths{"/tmp/runs/softmax"}.name(), "softmax");
  EXPECT_EQ(RunPaths{"/tmp/runs/softmax/"}.name(), "softmax");
  EXPECT_EQ(RunPaths{"runs/../x/."}.name(), "x");
}

}  // namespace
}  // namespace elliptical::run::testing
