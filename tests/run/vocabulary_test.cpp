// SPDX-License-Identifier: MIT
//
// A run of a language model keeps the words that its weights belong to: what the data become later
// changes neither what it writes nor what it measures.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <algorithm>

#include "elliptical/base/errors.h"
#include "elliptical/base/files.h"
#include "elliptical/run/generate_text.h"
#include "elliptical/run/measure_run.h"
#include "tests/run/small_runs.h"
#include "tests/support/error_message.h"

namespace elliptical::run::testing {
namespace {

using test::error_message;

/// A text of few words, some of them odd: no ASCII, a control character, punctuation.
constexpr const char* kWords[] = {"a", "caf\xC3\xA9", "\x1B[31m", "<b>", "\"", "\xE6\x97\xA5"};

class KeptVocabularyTest : public SmallRunTest {
 protected:
  KeptVocabularyTest() {
    fs::create_directory(data_folder_);
    write_all();
  }
  void write_all() const {
    for (const char* name : {"train.txt", "valid.txt", "test.txt"}) write(name, 1);
  }
  /// 60 lines of ten words; the frequencies, and so the numbers of words, depend on `stride`.
  void write(const std::string& name, size_t stride) const {
    std::string text;
    for (size_t i = 0; i < 600; ++i) {
      text += kWords[std::min<size_t>(i * stride % 23 % 7, 5)];
      text += i % 10 == 9 ? "\n" : " ";
    }
    write_file_atomically(data_folder_ / name, text);
  }
  RunPaths start_on_text(const std::string& name) {
    return start(name, {"task.data.name=" + data_folder_.string()});
  }
  std::string generated(const RunPaths& run) {
    std::string text;
    generate_text({.folder = run.folder,
                   .prompt = "a caf\xC3\xA9",
                   .options = {.num_tokens = 12},
                   .hooks = hooks(),
                   .on_text = [&](const std::string& piece) {
                     text += piece;
                     return true;
                   }});
    return text;
  }
  double perplexity(const RunPaths& run) {
    LoadedRun loaded = load(run);
    for (const Record& record : evaluate_run({.run = loaded, .hooks = hooks()})) {
      if (record.metric == "perplexity") return record.value;
    }
    return 0;
  }
  /// As a version that did not keep the words left its checkpoints.
  static void forget_words(const RunPaths& run) {
    for (const int64_t step : checkpoint_steps(run.checkpoints())) {
      const fs::path folder = run.checkpoints() / checkpoint_name(step);
      CheckpointFolder checkpoint = open_checkpoint(folder);
      fs::remove(folder / kVocabularyFile);
      checkpoint.files.erase(kVocabularyFile);
      write_file_atomically(folder / kStateFile,
                            checkpoint_state_text(checkpoint.state, checkpoint.files));
    }
  }

  const fs::path data_folder_ = root_ / "data";
};

TEST_F(KeptVocabularyTest, TextIsGeneratedWhereTheDataAreGoneOrChanged) {
  const RunPaths run = start_on_text("a");
  const std::string before = generated(run);
  EXPECT_TRUE(before.starts_with("a caf\xC3\xA9") && before.ends_with("\n")) << before;
  write("train.txt", 5);
  EXPECT_EQ(generated(run), before);
  fs::remove_all(data_folder_);
  EXPECT_EQ(generated(run), before);
  // A checkpoint without words needs the data, as ever.
  forget_words(run);
  EXPECT_NE(error_message<DataError>([&] { generated(run); }).find(data_folder_.string()),
            std::string::npos);
  fs::create_directory(data_folder_);
  write_all();
  EXPECT_EQ(generated(run), before);
}

TEST_F(KeptVocabularyTest, WhatIsMeasuredDoesNotDependOnTheTrainingTextAnyMore) {
  const RunPaths run = start_on_text("a");
  const double before = perplexity(run);
  write("train.txt", 5);
  EXPECT_EQ(perplexity(run), before);
  forget_words(run);
  EXPECT_NE(perplexity(run), before);  // the test sees the difference: other numbers of words
}

TEST_F(KeptVocabularyTest, AForkToOtherTextReadsItInTheWordsOfTheWeights) {
  const RunPaths run = start_on_text("a");
  const std::string words =
      store::find_checkpoint(run.checkpoints(), store::CheckpointPart::kVocabulary, {})->vocabulary;
  EXPECT_TRUE(words.starts_with("<eos>\n"));
  write("train.txt", 5);
  ForkRequest request{.source = run, .assignments = {"train.steps=6"}};
  const RunPaths forked = fork("b", request);
  EXPECT_EQ(read_file(forked.checkpoints() / "step-6" / "vocabulary.txt"), words);
  // So does the fork when it goes on.
  fs::remove_all(forked.checkpoints() / "step-6");
  resume_run({.paths = forked, .program = "test", .hooks = hooks()});
  EXPECT_EQ(read_file(forked.checkpoints() / "step-6" / "vocabulary.txt"), words);

  request.assignments = {"task.data.max_words=3"};
  EXPECT_EQ(error_message<ConfigError>([&] { fork("c", request); }),
            "data: max_words must be 0 or at least the 8 words that the weights belong to, got 3");
}

}  // namespace
}  // namespace elliptical::run::testing
