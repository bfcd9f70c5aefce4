// SPDX-License-Identifier: MIT
//
// Checkpoints without torch: which one is whole, and which one is read. Fault ID: C6.
#include "elliptical/base/checkpoint_folder.h"

#include <gtest/gtest.h>

#include <array>
#include <new>

#include "elliptical/base/available_memory.h"
#include "elliptical/base/checkpoint_state.h"
#include "elliptical/base/errors.h"
#include "elliptical/base/sha256.h"
#include "tests/support/error_message.h"
#include "tests/support/resource_limit.h"
#include "tests/support/temporary_folder.h"

namespace elliptical {
namespace {

namespace fs = std::filesystem;

class CheckpointFolderTest : public testing::Test {
 protected:
  void add(int64_t step) {
    const std::string name = checkpoint_name(step), model = "weights " + std::to_string(step);
    fs::create_directory(folder_.path() / name);
    folder_.write(name + "/" + kModelFile, model);
    folder_.write(name + "/" + kStateFile,
                  checkpoint_state_text(
                      {.step = step, .program = "test"},
                      {{kModelFile, {sha256_hex(model), static_cast<int64_t>(model.size())}}}));
  }

  std::optional<int64_t> newest() {
    const auto read = [](const CheckpointFolder& checkpoint) {
      checkpoint.checked_file(kModelFile);
    };
    return newest_usable(folder_.path(), read,
                         [this](const std::string& line) { notices_.push_back(line); });
  }

  const test::TemporaryFolder folder_;
  std::vector<std::string> notices_;
};

TEST_F(CheckpointFolderTest, C6TheNewestThatIsWhole) {
  EXPECT_EQ(newest(), std::nullopt);
  for (const int64_t step : {2, 10, 9}) add(step);
  EXPECT_EQ(checkpoint_steps(folder_.path()), (std::vector<int64_t>{2, 9, 10}));
  EXPECT_EQ(newest(), 10);
  EXPECT_TRUE(notices_.empty());
  folder_.write("step-10/model.safetensors", "weights 11");
  EXPECT_EQ(newest(), 9);
  const std::string damaged = (folder_.path() / "step-10").string();
  EXPECT_EQ(notices_,
            std::vector<std::string>{
                damaged + ": can not be used: " + damaged +
                "/model.safetensors: its checksum must be the one in state.json, is not"});
  folder_.write("step-9/model.safetensors", "weights");
  folder_.write("step-2/state.json", "{}");
  EXPECT_EQ(newest(), std::nullopt);
}

TEST_F(CheckpointFolderTest, SaysWhatIsWrongWithAFile) {
  add(3);
  const CheckpointFolder whole = open_checkpoint(folder_.path() / "step-3");
  EXPECT_EQ(whole.state.step, 3);
  EXPECT_TRUE(whole.has(kModelFile));
  EXPECT_EQ(whole.checked_file(kModelFile), folder_.path() / "step-3" / kModelFile);
  const std::string file = (folder_.path() / "step-3").string() + "/";
  const auto message = [&](const char* name) {
    return test::error_message<DataError>([&] { whole.checked_file(name); });
  };
  EXPECT_EQ(message(kAverageFile), file + "ema.safetensors: state.json does not mention it");
  folder_.write("step-3/model.safetensors", "weights");
  EXPECT_EQ(message(kModelFile), file + "model.safetensors: must have 9 bytes, has 7");
  fs::remove(file + kModelFile);
  EXPECT_EQ(message(kModelFile), file + "model.safetensors: must be a file, is none");
}

TEST_F(CheckpointFolderTest, AStateOfAnotherStepIsRefused) {
  add(3);
  fs::rename(folder_.path() / "step-3", folder_.path() / "step-4");
  EXPECT_EQ(
      test::error_message<DataError>([&] { open_checkpoint(folder_.path() / "step-4"); }),
      (folder_.path() / "step-4/state.json").string() + ": step must be that of the folder, is 3");
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const size_t place = text.find(from);
  if (place == std::string::npos) throw std::logic_error("there is no " + from);
  return text.replace(place, from.size(), to);
}

// So many brackets ended the process: printing a value for its checksum recurses.
TEST_F(CheckpointFolderTest, C6S1NestedStateFallsBack) {
  add(1);
  add(2);
  const std::string brackets = std::string(200'000, '[') + std::string(200'000, ']');
  const std::string file = (folder_.path() / "step-2/state.json").string();
  for (const std::string& text :
       {brackets, "{\"checksum\": " + brackets + "}",
        replaced(folder_.read("step-2/state.json"), "{", "{\"x\": " + brackets + ",")}) {
    notices_.clear();
    folder_.write("step-2/state.json", text);
    EXPECT_EQ(newest(), 1);
    ASSERT_EQ(notices_.size(), 1);
    EXPECT_TRUE(notices_[0].ends_with(file + ": must nest at most 8 deep, nests deeper"))
        << notices_[0];
  }
}

TEST_F(CheckpointFolderTest, C6S1LargeStateFallsBack) {
  add(1);
  add(2);
  std::string many = "{\"a\": 0", zeros = "[0";
  for (int i = 0; i < 100'000; ++i) {
    many += ",\"" + std::to_string(i) + "\": 0";
    zeros += ",0";
  }
  const std::vector<std::pair<std::string, std::string>> cases = {
      {std::string(5 << 20, ' '), "must have at most 4194304 bytes, has more"},
      {many + "}", "must hold at most 1000 values, holds more"},
      {zeros + "]", "must hold at most 1000 values, holds more"}};
  for (const auto& [text, reason] : cases) {
    notices_.clear();
    folder_.write("step-2/state.json", text);
    EXPECT_EQ(newest(), 1);
    ASSERT_EQ(notices_.size(), 1);
    EXPECT_TRUE(notices_[0].ends_with(reason)) << notices_[0];
  }
}

TEST_F(CheckpointFolderTest, C6WrongFieldsAreNamedAndFallBack) {
  add(1);
  add(2);
  const std::string good = folder_.read("step-2/state.json");
  const fs::path path = folder_.path() / "step-2/state.json";
  const auto signed_anew = [&](const std::string& text) {
    const std::string mark = "\"checksum\": \"";
    const size_t place = text.find(mark);
    return std::string(text).replace(place + mark.size(), 64,
                                     checkpoint_state_checksum(text, path));
  };
  EXPECT_EQ(signed_anew(good), good);
  const std::vector<std::array<std::string, 3>> cases = {
      {"\"step\": 2", "\"step\": \"2\"", "step must be a whole number, is text"},
      {"\"step\": 2", "\"step\": 2.5", "step must be a whole number, is a fraction"},
      {"\"step\": 2", "\"step\": true", "step must be a whole number, is true or false"},
      {"\"step\": 2", "\"step\": 9223372036854775808",
       "step must be at most 9223372036854775807, is 9223372036854775808"},
      {"\"step\": 2,", "", "step must be a whole number, is missing"},
      {"\"step\": 2", "\"step\": 3", "step must be that of the folder, is 3"},
      {"\"format\": 1", "\"format\": [1]", "format must be a whole number, is a list"},
      {"\"format\": 1", "\"format\": 2", "format must be 1, is 2"},
      {"\"evaluated\": false", "\"evaluated\": null", "evaluated must be true or false, is null"},
      {"\"config\": \"\"", "\"config\": {}", "config must be text, is an object"},
      {"\"data\": {}", "\"data\": [0]", "data must be a JSON object, is a list"},
      {"\"data\": {}", "\"data\": {\"f\": 1}", "data.f must be text, is a whole number"},
      {"\"files\": {", "\"files\": {\"a\": 1,", "files.a must be a JSON object, is a whole number"},
      {"\"bytes\": 9", "\"bytes\": \"9\"",
       "files.model.safetensors.bytes must be a whole number, is text"},
      {"\"bytes\": 9", "\"x\": 9",
       "files.model.safetensors.bytes must be a whole number, is missing"},
      {"\"seed\": 0", "\"seed\": 0, \"seed\": 0",
       "key \"seed\" must stand there once, comes twice"}};
  for (const auto& [from, to, reason] : cases) {
    notices_.clear();
    const std::string text = replaced(good, from, to);
    const bool is_twice = reason.starts_with("key");
    folder_.write("step-2/state.json", is_twice ? text : signed_anew(text));
    EXPECT_EQ(newest(), 1) << reason;
    ASSERT_EQ(notices_.size(), 1);
    EXPECT_TRUE(notices_[0].ends_with(path.string() + ": " + reason)) << notices_[0];
  }
  folder_.write("step-2/state.json", replaced(good, "\"seed\": 0", "\"seed\": 1"));
  notices_.clear();
  EXPECT_EQ(newest(), 1);
  EXPECT_TRUE(notices_[0].ends_with("its checksum must be that of its contents, is not"));
}

TEST_F(CheckpointFolderTest, C6NoOpenFilesLeftAreNoDamage) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "sanitizers themselves open something to look at an object";
#endif
  add(1);
  add(2);
  const CheckpointFolder whole = open_checkpoint(folder_.path() / "step-2");
  std::string listing, opening, checking, looking;
  {
    const test::ResourceLimit limit = test::no_open_files();
    listing = test::error_message<ResourceError>([&] { checkpoint_steps(folder_.path()); });
    opening = test::error_message<ResourceError>([&] { open_checkpoint(whole.folder); });
    checking = test::error_message<ResourceError>([&] { whole.checked_file(kModelFile); });
    looking = test::error_message<ResourceError>([&] { newest(); });
  }
  const std::string reason = ": Too many open files (raise ulimit -n)";
  EXPECT_EQ(listing, folder_.path().string() + ": can not list" + reason);
  EXPECT_EQ(opening, (whole.folder / kStateFile).string() + ": can not open" + reason);
  EXPECT_EQ(checking, (whole.folder / kModelFile).string() + ": can not open" + reason);
  EXPECT_EQ(looking, listing);
  EXPECT_TRUE(notices_.empty());
  EXPECT_EQ(newest(), 2);
}

TEST_F(CheckpointFolderTest, C6AFolderThatCanNotBeListedIsNotEmpty) {
  EXPECT_TRUE(checkpoint_steps(folder_.path() / "none").empty());
  const fs::path file = folder_.write("file", "");
  EXPECT_EQ(test::error_message<DataError>([&] { checkpoint_steps(file); }),
            file.string() + ": can not list: Not a directory");
}

TEST_F(CheckpointFolderTest, C6WhateverReadingThrowsFallsBack) {
  add(1);
  add(2);
  const auto newest_if = [&](const auto& fail) {
    return newest_usable(
        folder_.path(),
        [&](const CheckpointFolder& checkpoint) {
          if (checkpoint.state.step == 2) fail();
        },
        [this](const std::string& line) { notices_.push_back(line); });
  };
  EXPECT_EQ(newest_if([] { throw std::length_error("no such size"); }), 1);
  EXPECT_EQ(newest_if([] { throw std::logic_error("from a library"); }), 1);
  EXPECT_EQ(notices_.size(), 2);
  EXPECT_TRUE(notices_[0].ends_with("step-2: can not be used: no such size")) << notices_[0];
  // Neither a signal nor a full memory says anything about a checkpoint, which would be moved
  // aside.
  EXPECT_THROW(newest_if([] { throw Interrupted("stopped", 2); }), Interrupted);
  EXPECT_THROW(newest_if([] { throw MemoryError("full"); }), MemoryError);
  EXPECT_THROW(newest_if([] { throw ResourceError("too many open files"); }), ResourceError);
  EXPECT_THROW(newest_if([] { throw std::bad_alloc(); }), std::bad_alloc);
}

}  // namespace
}  // namespace elliptical
