// SPDX-License-Identifier: MIT
//
// Checkpoints that are whole, half there, damaged, too many. Fault IDs: C2, C3, C5, C6, C7.
#include "elliptical/store/checkpoint.h"

#include <sys/stat.h>
#include <torch/torch.h>
#include <unistd.h>

#include <csignal>
#include <fstream>

#include "elliptical/base/available_memory.h"
#include "elliptical/base/errors.h"
#include "elliptical/base/files.h"
#include "tests/support/error_message.h"
#include "tests/support/lines.h"
#include "tests/support/resource_limit.h"
#include "tests/support/temporary_folder.h"

namespace elliptical::store {
namespace {

using test::any_contains;
using test::error_message;

class CheckpointTest : public ::testing::Test {
 protected:
  CheckpointTest() : folder_(root_ / "checkpoints") { fs::create_directory(folder_); }

  void save(int64_t step) {
    const NamedTensors model = {
        {"a.weight", at::full({3, 2}, static_cast<double>(step), at::kFloat)},
        {"count", at::full({}, step, at::kLong)}};
    const NamedTensors optimizer = {{"exp_avg.a.weight", at::ones({3, 2})}};
    save_checkpoint(folder_,
                    {.step = step, .seed = 5, .config = "seed = 5\n", .data = {{"text", "abc"}}},
                    {.model = model,
                     .optimizer = optimizer,
                     .average = average_,
                     .task = task_,
                     .vocabulary = vocabulary_},
                    notice_);
  }

  /// A checkpoint with every file that there can be.
  void save_all(int64_t step) {
    average_ = task_ = {{"a.weight", at::full({3, 2}, 0.5f)}};
    vocabulary_ = "<eos>\nthe\n<unk>\n";
    save(step);
  }

  int64_t newest() { return newest_checkpoint(folder_, CheckpointPart::kAll, notice_)->state.step; }

  fs::path file(int64_t step, const std::string& name) const {
    return folder_ / ("step-" + std::to_string(step)) / name;
  }

  const test::TemporaryFolder temporary_;
  const fs::path root_ = temporary_.path();
  fs::path folder_;
  NamedTensors average_, task_;
  std::string vocabulary_;
  std::vector<std::string> notices_;
  Notice notice_ = [this](const std::string& line) { notices_.push_back(line); };
};

constexpr const char* kFiles[] = {kModelFile, kOptimizerFile,  kAverageFile,
                                  kTaskFile,  kVocabularyFile, kStateFile};

void overwrite(const fs::path& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
}

void flip_bit(const fs::path& path, int64_t offset) {
  std::string bytes = read_file(path);
  bytes[offset < 0 ? bytes.size() + offset : offset] ^= 0x10;
  overwrite(path, bytes);
}

TEST_F(CheckpointTest, RoundTrip) {
  save(12);
  const Checkpoint checkpoint = read_checkpoint(folder_ / "step-12", CheckpointPart::kAll);
  EXPECT_EQ(checkpoint.state.step, 12);
  EXPECT_EQ(checkpoint.state.seed, 5);
  EXPECT_EQ(checkpoint.state.config, "seed = 5\n");
  EXPECT_EQ(checkpoint.state.data.at("text"), "abc");
  EXPECT_TRUE(checkpoint.model.at("a.weight").equal(at::full({3, 2}, 12.0f)));
  EXPECT_EQ(checkpoint.model.at("count").item<int64_t>(), 12);
  EXPECT_TRUE(checkpoint.optimizer.at("exp_avg.a.weight").equal(at::ones({3, 2})));
  EXPECT_TRUE(read_checkpoint(folder_ / "step-12", CheckpointPart::kModel).optimizer.empty());
}

TEST_F(CheckpointTest, AverageIsAFileOfItsOwn) {
  save(1);
  EXPECT_FALSE(fs::exists(file(1, "ema.safetensors")));
  EXPECT_TRUE(read_checkpoint(folder_ / "step-1", CheckpointPart::kAll).average.empty());
  EXPECT_EQ(error_message<DataError>(
                [&] { read_checkpoint(folder_ / "step-1", CheckpointPart::kAverage); }),
            file(1, "ema.safetensors").string() + ": state.json does not mention it");

  average_ = {{"a.weight", at::full({3, 2}, 0.5f)}};
  save(2);
  const Checkpoint average = read_checkpoint(folder_ / "step-2", CheckpointPart::kAverage);
  EXPECT_TRUE(average.average.at("a.weight").equal(at::full({3, 2}, 0.5f)));
  EXPECT_TRUE(average.model.empty() && average.optimizer.empty());
  EXPECT_TRUE(read_checkpoint(folder_ / "step-2", CheckpointPart::kModel).average.empty());

  flip_bit(file(2, "ema.safetensors"), -1);
  EXPECT_EQ(newest(), 1);
  EXPECT_TRUE(any_contains(notices_, "ema.safetensors: its checksum must be"));
}

TEST_F(CheckpointTest, C6VocabularyIsAFileOfItsOwnThatIsReadWithAnyPart) {
  save(1);
  EXPECT_FALSE(fs::exists(file(1, "vocabulary.txt")));
  vocabulary_ = "<eos>\n\xC3\xA9\x1B[31m\n<unk>\n";
  save(2);
  EXPECT_EQ(read_file(file(2, "vocabulary.txt")), vocabulary_);
  for (const CheckpointPart part :
       {CheckpointPart::kVocabulary, CheckpointPart::kModel, CheckpointPart::kAll}) {
    EXPECT_EQ(find_checkpoint(folder_, part, {})->vocabulary, vocabulary_);
  }
  EXPECT_TRUE(find_checkpoint(folder_, CheckpointPart::kVocabulary, {})->model.empty());
  mark_evaluated(folder_, 2);
  EXPECT_EQ(find_checkpoint(folder_, CheckpointPart::kModel, {})->vocabulary, vocabulary_);

  // Weights with other words are other weights: damage falls back to the checkpoint before.
  flip_bit(file(2, "vocabulary.txt"), 7);
  EXPECT_EQ(newest(), 1);
  EXPECT_TRUE(any_contains(notices_, "vocabulary.txt: its checksum must be"));
}

TEST_F(CheckpointTest, NoneYet) {
  EXPECT_FALSE(newest_checkpoint(folder_, CheckpointPart::kAll, notice_));
  EXPECT_FALSE(newest_checkpoint(root_ / "nowhere", CheckpointPart::kAll, notice_));
}

TEST_F(CheckpointTest, NewestIsByNumberNotByName) {
  save(9);
  save(10);
  EXPECT_EQ(newest(), 10);
}

TEST_F(CheckpointTest, C6EveryKindOfDamageFallsBackToTheOlderOne) {
  const std::vector<std::pair<std::string, std::function<void()>>> kinds = {
      {"must have", [&] { fs::resize_file(file(2, "model.safetensors"), 20); }},
      {"must have", [&] { overwrite(file(2, "model.safetensors"), ""); }},
      {"must have", [&] { overwrite(file(2, "model.safetensors"), "<html>not found</html>"); }},
      {"must be a file", [&] { fs::remove(file(2, "model.safetensors")); }},
      {"must be a file",
       [&] {
         fs::remove(file(2, "optimizer.safetensors"));
         fs::create_directory(file(2, "optimizer.safetensors"));
       }},
      {"state.json", [&] { fs::remove(file(2, "state.json")); }},
      {"must be JSON, is not (offset 1)", [&] { overwrite(file(2, "state.json"), ""); }},
      {"must nest at most 8 deep",
       [&] {
         const std::string open(200'000, '['), close(200'000, ']');
         overwrite(file(2, "state.json"), "{\"x\":" + open + close + "}");
       }},
      {"must be a JSON object", [&] { overwrite(file(2, "state.json"), "[1, 2]"); }},
      {"must be a folder",
       [&] {
         fs::remove_all(folder_ / "step-2");
         overwrite(folder_ / "step-2", "a file");
       }},
      {"state.json", [&] {
         fs::remove_all(folder_ / "step-2");
         fs::create_directory(folder_ / "step-2");
       }}};
  save(1);
  for (const auto& [reason, damage] : kinds) {
    fs::remove_all(folder_ / "step-2");
    save(2);
    ASSERT_EQ(newest(), 2);
    notices_.clear();
    damage();
    EXPECT_EQ(newest(), 1) << reason;
    ASSERT_EQ(notices_.size(), 1);
    EXPECT_NE(notices_[0].find("step-2: can not be used"), std::string::npos) << notices_[0];
    EXPECT_NE(notices_[0].find(reason), std::string::npos) << notices_[0];
  }
}

TEST_F(CheckpointTest, C6UnreadableFileFallsBack) {
  if (geteuid() == 0) GTEST_SKIP() << "root may read every file";
  save(1);
  save(2);
  fs::permissions(file(2, "model.safetensors"), fs::perms::none);
  EXPECT_EQ(newest(), 1);
}

TEST_F(CheckpointTest, C6EveryKindOfDamageOfEveryFileFallsBack) {
  const std::vector<std::pair<std::string, std::function<void(const fs::path&)>>> kinds = {
      {"cut", [](const fs::path& path) { fs::resize_file(path, fs::file_size(path) / 2); }},
      {"longer", [](const fs::path& path) { overwrite(path, read_file(path) + "\n"); }},
      {"empty", [](const fs::path& path) { overwrite(path, ""); }},
      {"zeros",
       [](const fs::path& path) { overwrite(path, std::string(fs::file_size(path), '\0')); }},
      {"a web page", [](const fs::path& path) { overwrite(path, "<html>not found</html>"); }},
      {"missing", [](const fs::path& path) { fs::remove(path); }},
      {"a folder",
       [](const fs::path& path) {
         fs::remove(path);
         fs::create_directory(path);
       }},
      {"a pipe", [](const fs::path& path) {
         fs::remove(path);
         mkfifo(path.c_str(), 0600);
       }}};
  save_all(1);
  save_all(2);
  ASSERT_EQ(std::distance(fs::directory_iterator(folder_ / "step-2"), fs::directory_iterator()),
            std::ssize(kFiles));
  for (const char* name : kFiles) {
    for (const auto& [kind, damage] : kinds) {
      // One byte more at the end of state.json is what a text may have.
      if (kind == "longer" && name == std::string(kStateFile)) continue;
      damage(file(2, name));
      notices_.clear();
      EXPECT_EQ(newest(), 1) << name << ": " << kind;
      ASSERT_EQ(notices_.size(), 1U) << name << ": " << kind;
      EXPECT_TRUE(any_contains(notices_, file(2, name).string())) << notices_[0];
      fs::remove_all(folder_ / "step-2");
      save_all(2);
      ASSERT_EQ(newest(), 2);
    }
  }
}

TEST_F(CheckpointTest, C6MemoryAndOpenFilesThatEndAreNoDamage) {
  save(1);
  average_ = {{"large", at::zeros({int64_t{16} << 20})}};
  save(2);
  std::string without_memory, without_files;
  {
    const test::ResourceLimit limit = test::little_memory(rlim_t{16} << 20);
    without_memory = error_message<MemoryError>([&] { newest(); });
  }
  {
    const test::ResourceLimit limit = test::no_open_files();
    without_files = error_message<ResourceError>([&] { newest(); });
  }
  EXPECT_TRUE(without_memory.starts_with("memory: 67.1 MB more were asked for")) << without_memory;
  EXPECT_EQ(without_files,
            folder_.string() + ": can not list: Too many open files (raise ulimit -n)");
  EXPECT_TRUE(notices_.empty());
  EXPECT_EQ(newest(), 2);
}

TEST_F(CheckpointTest, C6WordsThatAreNoneFallBackThoughTheirChecksumIsRight) {
  vocabulary_ = "good";
  save(1);
  vocabulary_ = "bad";
  save(2);
  const CheckWords check = [](const std::string& vocabulary, const std::string& name) {
    if (vocabulary != "good") throw DataError(name + ": no words");
  };
  EXPECT_EQ(find_checkpoint(folder_, CheckpointPart::kModel, notice_, check)->state.step, 1);
  EXPECT_TRUE(any_contains(
      notices_, "step-2: can not be used: " + file(2, kVocabularyFile).string() + ": no words"));
  EXPECT_EQ(newest_checkpoint(folder_, CheckpointPart::kAll, notice_, check)->state.step, 1);
  EXPECT_EQ(error_message<DataError>(
                [&] { read_checkpoint(folder_ / "step-2", CheckpointPart::kModel, check); }),
            file(2, kVocabularyFile).string() + ": no words");
}

TEST_F(CheckpointTest, C7EveryFlippedBitIsFound) {
  save_all(1);
  save_all(2);
  for (const char* name : kFiles) {
    const auto length = static_cast<int64_t>(fs::file_size(file(2, name)));
    for (int64_t offset = 0; offset < length; offset += 7) {
      flip_bit(file(2, name), offset);
      notices_.clear();
      EXPECT_EQ(newest(), 1) << name << " " << offset;
      EXPECT_TRUE(any_contains(notices_, name));
      flip_bit(file(2, name), offset);
    }
    EXPECT_EQ(newest(), 2);
  }
}

TEST_F(CheckpointTest, C7StepOfAnotherFolderIsRefused) {
  save(1);
  fs::copy(folder_ / "step-1", folder_ / "step-3");
  EXPECT_EQ(newest(), 1);
  EXPECT_TRUE(any_contains(notices_, "step must be that of the folder, is 1"));
}

TEST_F(CheckpointTest, C6AllDamagedIsAnErrorNotANewStart) {
  save(1);
  overwrite(file(1, "state.json"), "{}");
  EXPECT_NE(
      error_message<RunError>([&] { newest(); }).find("one checkpoint must be whole, none is"),
      std::string::npos);
}

TEST_F(CheckpointTest, C6WhoeverOnlyReadsWeightsIsToldOfEachAndGetsNone) {
  EXPECT_FALSE(find_checkpoint(folder_, CheckpointPart::kModel, notice_));
  save(1);
  save(2);
  flip_bit(file(2, "model.safetensors"), -1);
  EXPECT_EQ(find_checkpoint(folder_, CheckpointPart::kModel, notice_)->state.step, 1);
  flip_bit(file(1, "model.safetensors"), -1);
  notices_.clear();
  EXPECT_FALSE(find_checkpoint(folder_, CheckpointPart::kModel, notice_));
  EXPECT_EQ(notices_.size(), 2U);
}

TEST_F(CheckpointTest, C5SavingReplacesALeftover) {
  fs::create_directory(folder_ / "step-4.incomplete");
  overwrite(folder_ / "step-4.incomplete" / "rubbish", "x");
  save(4);
  EXPECT_TRUE(any_contains(notices_, "step-4.incomplete: left by an earlier process, replaced"));
  EXPECT_EQ(newest(), 4);
  EXPECT_FALSE(fs::exists(folder_ / "step-4" / "rubbish"));
  EXPECT_FALSE(fs::exists(folder_ / "step-4.incomplete"));
}

TEST_F(CheckpointTest, C2LeftoversAreRemovedAndDamagedOnesMovedAside) {
  save(1);
  save(2);
  fs::rename(folder_ / "step-2", folder_ / "step-2.incomplete");  // as if removal had begun
  save(3);
  overwrite(file(3, "state.json"), "");
  clean_checkpoints(folder_, newest(), notice_);
  EXPECT_FALSE(fs::exists(folder_ / "step-2.incomplete"));
  EXPECT_TRUE(fs::exists(folder_ / "step-3.damaged"));
  EXPECT_TRUE(any_contains(notices_, "step-2.incomplete: left by an earlier process, removed"));
  EXPECT_TRUE(any_contains(notices_, "step-3: damaged, moved to step-3.damaged"));
  EXPECT_EQ(checkpoint_steps(folder_), std::vector<int64_t>{1});
  save(3);
  EXPECT_EQ(newest(), 3);
}

TEST_F(CheckpointTest, RetentionKeepsTheNewestAndTheBest) {
  for (int64_t step = 1; step <= 5; ++step) save(step);
  retain_checkpoints(folder_, 2, 2);
  EXPECT_EQ(checkpoint_steps(folder_), (std::vector<int64_t>{2, 4, 5}));
  retain_checkpoints(folder_, 2, std::nullopt);
  EXPECT_EQ(checkpoint_steps(folder_), (std::vector<int64_t>{4, 5}));
}

/// Writes fail as on a full disk while this lives: files may not grow beyond `max_bytes`.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t max_bytes)
      : handler_(signal(SIGXFSZ, SIG_IGN)), limit_(RLIMIT_FSIZE, max_bytes) {}
  ~FileSizeLimit() { signal(SIGXFSZ, handler_); }

 private:
  void (*handler_)(int);
  test::ResourceLimit limit_;
};

TEST_F(CheckpointTest, C3AFileThatCanNotGrowLeavesTheOldCheckpointAndNothingElse) {
  save(1);
  const auto whole = static_cast<int64_t>(fs::file_size(file(1, "model.safetensors")));
  for (int64_t max_bytes = 0; max_bytes < whole; max_bytes += 5) {
    std::string message;
    {
      const FileSizeLimit limit(static_cast<rlim_t>(max_bytes));
      message = error_message<std::runtime_error>([&] { save(2); });
    }
    EXPECT_NE(message.find("step-2.incomplete/"), std::string::npos) << message;
    EXPECT_EQ(newest(), 1);
    EXPECT_EQ(std::distance(fs::directory_iterator(folder_), fs::directory_iterator()), 1);
  }
  save(2);
  EXPECT_EQ(newest(), 2);
}

TEST_F(CheckpointTest, C12PathsThatAreNotUtf8AndVeryLong) {
  for (const std::string& name :
       {std::string("with space"), std::string("\xff\xfe"), std::string(200, 'x')}) {
    folder_ = root_ / name / "checkpoints";
    fs::create_directories(folder_);
    save_checkpoint(folder_, {.step = 1, .origin = (root_ / name).string()}, {.model = {}},
                    notice_);
    EXPECT_EQ(newest(), 1);
  }
}

}  // namespace
}  // namespace elliptical::store
