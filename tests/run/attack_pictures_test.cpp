// SPDX-License-Identifier: MIT
#include "elliptical/run/attack_pictures.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <csignal>
#include <nlohmann/json.hpp>

#include "elliptical/base/errors.h"
#include "elliptical/base/files.h"
#include "elliptical/base/safetensors.h"
#include "elliptical/run/attack_evaluation.h"
#include "elliptical/run/signals.h"
#include "elliptical/store/tensor_files.h"
#include "tests/run/toy_pictures.h"
#include "tests/support/temporary_folder.h"

namespace elliptical::run::testing {
namespace {

class AttackPictures : public ::testing::Test {
 protected:
  /// The records as lines, without what takes a different time every time.
  std::vector<std::string> attack(const AttackWords& words, bool leaves_pictures = true) {
    const AttackPlan plan = make_attack_plan(words);
    std::vector<std::string> lines;
    for (const Record& record : evaluate_attacks({.task = task_,
                                                  .eval_options = eval_options_,
                                                  .plan = plan,
                                                  .labels = {},
                                                  .state = folder_.path() / "attacks.jsonl",
                                                  .program = "test",
                                                  .hooks = {},
                                                  .dump = dump_,
                                                  .pictures = leaves_pictures ? file_ : ""})) {
      if (record.metric != "attack_seconds") lines.push_back(to_json_line(record));
    }
    return lines;
  }

  std::map<std::string, std::string> metadata() const {
    return SafetensorsFile(file_).header().metadata;
  }
  std::string state() const { return read_file(folder_.path() / "attacks.jsonl"); }

  const test::TemporaryFolder folder_;
  const fs::path file_ = folder_.path() / "attack.safetensors";
  ToyPictureTask task_{40};
  ToyPictureEvalOptions eval_options_;
  tasks::Dump* dump_ = nullptr;
};

TEST(ShownCase, IsTheLargestEpsOfTheFirstAttack) {
  const auto shown = [](const AttackWords& words) { return shown_case(make_attack_plan(words)); };
  EXPECT_EQ(shown({.attacks = "fgsm,pgd", .eps = "1/255,8/255,2/255"}), 1U);
  EXPECT_EQ(shown({.attacks = "pgd", .eps = "1/255,8/255", .metric_gradient = "both"}), 2U)
      << "through the metric";
  EXPECT_EQ(shown({.attacks = "pgd", .eps = "0"}), std::nullopt);
  EXPECT_EQ(shown({.attacks = "pgd", .eps = "1/255", .profile = "published"}), std::nullopt);
}

TEST(AttackMetadata, NamesClassesWhateverTheyAreCalled) {
  const AttackPlan plan = make_attack_plan({.attacks = "pgd", .eps = "1/255"});
  const auto metadata = attack_metadata(plan.cases[0], plan.profile, {"cat", "</script>\xFF\n"});
  EXPECT_EQ(nlohmann::json::parse(metadata.at("class_names")),
            nlohmann::json({"cat", "</script>\xEF\xBF\xBD\n"}));
  EXPECT_FALSE(attack_metadata(plan.cases[0], plan.profile, {}).contains("class_names"));
}

TEST_F(AttackPictures, AreThoseOfADumpAndChangeNoNumber) {
  const AttackWords words{.attacks = "pgd", .eps = "8/255"};
  const std::vector<std::string> lines = attack(words);
  const auto pictures = store::read_tensors(file_);
  tasks::Dump dump;
  dump_ = &dump;
  EXPECT_EQ(attack(words, false), lines);
  ASSERT_EQ(pictures.size(), dump.size());
  for (const auto& [name, pieces] : dump) {
    EXPECT_TRUE(pictures.at(name).equal(at::cat(pieces).narrow(0, 0, kMaxAttackPictures))) << name;
  }
  EXPECT_EQ(metadata().at("attack"), "pgd");
  EXPECT_EQ(metadata().at("eps"), "8/255");
  EXPECT_EQ(metadata().at("profile"), "strict");
  EXPECT_EQ(nlohmann::json::parse(metadata().at("class_names"))[3], "toy 3");
}

TEST_F(AttackPictures, OfFewPicturesAreAll) {
  eval_options_.max_pictures = 6;
  attack({.attacks = "fgsm,pgd", .eps = "1/255,8/255"});
  EXPECT_EQ(store::read_tensors(file_).at("clean").size(0), 6);
  EXPECT_EQ(metadata().at("attack"), "fgsm");
  EXPECT_EQ(metadata().at("eps"), "8/255");
  eval_options_.max_pictures = 0;
  task_.pixels = task_.pixels.narrow(0, 0, 10);
  task_.targets = task_.targets.narrow(0, 0, 10);
  attack({.attacks = "fgsm", .eps = "8/255"});
  EXPECT_EQ(store::read_tensors(file_).at("clean").size(0), 10);
}

TEST_F(AttackPictures, AreKeptWhenTheCommandIsGivenAgain) {
  const AttackWords words{.attacks = "fgsm", .eps = "8/255"};
  const std::vector<std::string> lines = attack(words);
  const auto written = fs::last_write_time(file_);
  const std::string finished = state();
  const int64_t passes = task_.num_passes;
  EXPECT_EQ(attack(words), lines);
  EXPECT_EQ(task_.num_passes, passes);
  EXPECT_EQ(fs::last_write_time(file_), written);

  // Without the file the first batches are attacked again, with no other effect.
  const std::string bytes = read_file(file_);
  fs::remove(file_);
  EXPECT_EQ(attack(words), lines);
  EXPECT_EQ(task_.num_passes - passes, kMaxAttackPictures / 4 * 3) << "clean, gradient, attacked";
  EXPECT_EQ(read_file(file_), bytes);
  EXPECT_EQ(state(), finished);
}

TEST_F(AttackPictures, AreOfTheLastCommand) {
  const AttackWords words{.attacks = "fgsm", .eps = "8/255"};
  attack(words);
  const std::string bytes = read_file(file_);
  attack({.attacks = "fgsm", .eps = "2/255"});
  EXPECT_EQ(metadata().at("eps"), "2/255");
  attack({.attacks = "fgsm", .eps = "4/255", .profile = "published"});
  EXPECT_EQ(metadata().at("eps"), "2/255") << "published attacks change no pixels";
  attack(words);
  EXPECT_EQ(read_file(file_), bytes);
  write_file_atomically(file_, "damaged");
  attack(words);
  EXPECT_EQ(read_file(file_), bytes);
}

TEST_F(AttackPictures, OfAStoppedAttackAreThoseOfAWholeOne) {
  const AttackWords words{.attacks = "pgd", .eps = "8/255", .assignments = {"pgd.steps=5"}};
  {
    const SignalGuard signals;
    task_.hook = [this](const at::Tensor&, const nn::Pass&) {
      if (task_.num_passes == 20) raise(SIGTERM);  // in the third batch
    };
    EXPECT_THROW(attack(words), Interrupted);
  }
  EXPECT_FALSE(fs::exists(file_));
  task_.hook = nullptr;
  const std::vector<std::string> lines = attack(words);
  const std::string bytes = read_file(file_);
  for (const char* name : {"attack.safetensors", "attacks.jsonl"})
    fs::remove(folder_.path() / name);
  EXPECT_EQ(attack(words), lines);
  EXPECT_EQ(read_file(file_), bytes);
}

}  // namespace
}  // namespace elliptical::run::testing
