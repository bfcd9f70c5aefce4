// SPDX-License-Identifier: MIT
//
// Checkpoints without torch: which one is whole, and which one is read. Fault ID: C6.
#include "elliptical/base/checkpoint_folder.h"

#include <gtest/gtest.h>

#include "elliptical/base/errors.h"
#include "elliptical/base/sha256.h"
#include "tests/support/error_message.h"
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

}  // namespace
}  // namespace elliptical
