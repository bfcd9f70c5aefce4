// SPDX-License-Identifier: MIT
#include "elliptical/run/attack_evaluation.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cmath>
#include <csignal>
#include <set>

#include "elliptical/base/errors.h"
#include "elliptical/base/files.h"
#include "elliptical/run/attack_records.h"
#include "elliptical/run/attack_state.h"
#include "elliptical/run/signals.h"
#include "tests/run/toy_pictures.h"
#include "tests/run/toy_task.h"
#include "tests/support/error_message.h"
#include "tests/support/passes.h"
#include "tests/support/temporary_folder.h"

namespace elliptical::run::testing {
namespace {

class AttackEvaluation : public ::testing::Test {
 protected:
  std::vector<Record> attack(const AttackWords& words, int64_t max_pictures = 0) {
    const AttackPlan plan = make_attack_plan(words);
    eval_options_.max_pictures = max_pictures;
    return evaluate_attacks(
        {.task = task_,
         .eval_options = eval_options_,
         .plan = plan,
         .labels = {{"run", std::string("r")}},
         .state = state_,
         .program = "test",
         .hooks = {.notice = [this](const std::string& line) { notices_.push_back(line); },
                   .progress = [this](const Progress& progress) { shown_.push_back(progress); }},
         .dump = dump_});
  }

  const test::TemporaryFolder folder_;
  const fs::path state_ = folder_.path() / "attacks.jsonl";
  ToyPictureTask task_;
  ToyPictureEvalOptions eval_options_;
  tasks::Dump* dump_ = nullptr;
  std::vector<std::string> notices_;
  std::vector<Progress> shown_;
};

/// The record of a metric, the first of an attack.
const Record& find(const std::vector<Record>& records,
                   const std::string& metric,
                   const std::string& attack) {
  for (const Record& record : records) {
    if (record.metric == metric && std::get<std::string>(record.labels.at("attack")) == attack) {
      return record;
    }
  }
  throw std::runtime_error("no record " + metric + " of " + attack);
}

/// Records as lines, without what takes a different time every time.
std::vector<std::string> lines(const std::vector<Record>& records) {
  std::vector<std::string> result;
  for (const Record& record : records) {
    if (record.metric != "attack_seconds") result.push_back(to_json_line(record));
  }
  return result;
}

TEST_F(AttackEvaluation, RecordsSayEverything) {
  const std::vector<Record> records = attack({.attacks = "pgd", .eps = "8/255"});
  ASSERT_EQ(records.size(), 5);
  const Record& robust = find(records, "robust_accuracy", "pgd");
  EXPECT_EQ(robust.count, 22);
  const Labels expected = {{"attack", std::string("pgd")},
                           {"attack_seed", int64_t{1}},
                           {"eps", 8.0 / 255},
                           {"eps_unit", std::string("pixel")},
                           {"metric_gradient", std::string("through")},
                           {"profile", std::string("strict")},
                           {"run", std::string("r")},
                           {"split", std::string("test")},
                           {"steps", int64_t{20}},
                           {"task", std::string("toy_pictures")}};
  EXPECT_EQ(robust.labels, expected);
  // Five of 22 labels were made wrong.
  EXPECT_DOUBLE_EQ(find(records, "clean_accuracy", "pgd").value, 100.0 * 17 / 22);
  EXPECT_LT(robust.value, 100.0 * 17 / 22);
  EXPECT_GE(find(records, "robust_accuracy_top5", "pgd").value, robust.value);
  EXPECT_GT(find(records, "attack_seconds", "pgd").value, 0);
  EXPECT_EQ(shown_.back().phase, "attack");
  EXPECT_EQ(shown_.back().done, 22);
  EXPECT_EQ(shown_.back().total, 22);
}

TEST_F(AttackEvaluation, NoEpsIsCleanAccuracy) {
  const std::vector<Record> records =
      attack({.attacks = "fgsm,pgd,spsa,apgd-t,auto-attack", .eps = "0"});
  for (const char* name : {"fgsm", "pgd", "spsa", "apgd-t", "auto-attack"}) {
    EXPECT_EQ(find(records, "robust_accuracy", name).value,
              find(records, "clean_accuracy", name).value);
    EXPECT_EQ(find(records, "robust_accuracy_top5", name).value,
              find(records, "clean_accuracy_top5", name).value);
  }
}

TEST_F(AttackEvaluation, BatchesDoNotMatter) {
  const AttackWords words{.attacks = "pgd,square",
                          .eps = "4/255,8/255",
                          .assignments = {"square.queries=50", "pgd.steps=5"}};
  const std::vector<Record> four = attack(words);
  eval_options_.batch_size = 7;
  EXPECT_EQ(lines(attack(words)), lines(four));
}

TEST_F(AttackEvaluation, OnlySoManyPictures) {
  const AttackWords words{.attacks = "fgsm", .eps = "4/255"};
  EXPECT_EQ(attack(words, 6).front().count, 6);
  EXPECT_EQ(shown_.back().total, 6);
  const int64_t passes = task_.num_passes;
  EXPECT_EQ(attack(words, 100).front().count, 22);
  // The first batch is known; the second, of which two pictures were done, is done again.
  EXPECT_EQ(task_.num_passes - passes, 5 * 3) << "clean, gradient, attacked";
}

TEST_F(AttackEvaluation, A3ASignalKeepsFinishedBatches) {
  const AttackWords words{.attacks = "pgd,fgsm", .eps = "4/255", .assignments = {"pgd.steps=5"}};
  const std::vector<Record> whole = attack(words);
  const int64_t passes_of_all = task_.num_passes;
  fs::remove(state_);
  task_.num_passes = 0;
  {
    const SignalGuard signals;
    task_.hook = [this](const at::Tensor&, const nn::Pass&) {
      if (task_.num_passes == 20) raise(SIGTERM);  // in pgd of the third batch
    };
    try {
      attack(words);
      ADD_FAILURE() << "went on after a signal";
    } catch (const Interrupted& interrupted) {
      EXPECT_EQ(interrupted.signal, SIGTERM);
      EXPECT_STREQ(interrupted.what(),
                   "attack: stopped by SIGTERM, finished batches are kept (to go on: the same "
                   "command)");
    }
    EXPECT_EQ(task_.num_passes, 21) << "no pass was begun after the signal";
  }
  task_.hook = nullptr;
  EXPECT_EQ(lines(attack(words)), lines(whole));
  EXPECT_GT(task_.num_passes, 21);
  EXPECT_LT(task_.num_passes, passes_of_all + 21);
  const int64_t before = task_.num_passes;
  EXPECT_EQ(lines(attack(words)), lines(whole));
  EXPECT_EQ(task_.num_passes, before) << "all is known now";
}

TEST_F(AttackEvaluation, A3AFileCutAnywhereIsGoneOnFrom) {
  const AttackWords words{
      .attacks = "auto-attack",
      .eps = "3/255",
      .assignments = {"auto-attack.apgd.steps=5", "auto-attack.apgd_t.steps=3",
                      "auto-attack.fab.steps=3", "auto-attack.square.queries=10"}};
  const std::vector<std::string> whole = lines(attack(words));
  const std::string text = read_file(state_);
  for (size_t length = 0; length < text.size(); length += text.size() / 7 + 1) {
    write_file_atomically(state_, text.substr(0, length));
    EXPECT_EQ(lines(attack(words)), whole) << length;
  }
  EXPECT_TRUE(notices_.empty());
  // A line that was damaged later is named and its batch done again.
  std::string damaged = text;
  damaged.replace(text.find("\"batch\":1"), 9, "\"batch\":x");
  write_file_atomically(state_, damaged);
  EXPECT_EQ(lines(attack(words)), whole);
  ASSERT_EQ(notices_.size(), 1);
  EXPECT_NE(notices_[0].find("attacks.jsonl:2: "), std::string::npos) << notices_[0];
  EXPECT_NE(notices_[0].find("(its batch is attacked again)"), std::string::npos);
}

TEST_F(AttackEvaluation, PartsOfThePicturesAreRecordedWhereAsked) {
  const AttackWords words{.attacks = "pgd", .eps = "8/255"};
  tasks::Dump dump;
  dump_ = &dump;
  const std::vector<Record> plain = attack(words);
  dump_ = nullptr;
  const at::Tensor right =
      at::cat(dump.at("adversarial_logits")).argmax(1) == at::cat(dump.at("labels"));
  attack(words);
  task_.num_passes = 0;
  eval_options_.blocks = 4;
  const std::vector<Record> records = attack(words);
  EXPECT_EQ(task_.num_passes, 0) << "parts change nothing about the batches";
  ASSERT_EQ(records.size(), plain.size() + 4);
  for (int64_t block = 0; block < 4; ++block) {
    const Record& record = records[plain.size() + static_cast<size_t>(block)];
    // 22 pictures: 0 .. 5, 6 .. 10, 11 .. 16, 17 .. 21.
    const int64_t first = (22 * block + 3) / 4, count = (22 * (block + 1) + 3) / 4 - first;
    EXPECT_EQ(record.metric, "block_robust_accuracy");
    EXPECT_EQ(record.count, count);
    EXPECT_DOUBLE_EQ(record.value, 100 * right.narrow(0, first, count).sum().item<double>() /
                                       static_cast<double>(count));
    Labels labels = find(plain, "robust_accuracy", "pgd").labels;
    labels["block"] = block;
    labels["cut"] = std::string("balanced");
    labels["pictures"] = int64_t{22};
    EXPECT_EQ(record.labels, labels);
  }
}

TEST_F(AttackEvaluation, PartsAreOfThePicturesThatWereAttacked) {
  eval_options_.blocks = 3;
  const std::vector<Record> records = attack(
      {.attacks = "apgd-ce,apgd-t,fab-t,square",
       .eps = "3/255",
       .assignments = {"apgd-ce.steps=5", "apgd-t.steps=3", "fab-t.steps=3", "square.queries=5"}},
      6);
  std::map<std::string, double> sums;
  for (const Record& record : records) {
    if (record.metric != "block_robust_accuracy") continue;
    EXPECT_EQ(record.count, 2);
    sums[std::get<std::string>(record.labels.at("attack"))] += record.value / 3;
  }
  ASSERT_EQ(sums.size(), 5) << "the mean of the four has parts, too";
  for (const auto& [name, mean] : sums) {
    EXPECT_NEAR(mean, find(records, "robust_accuracy", name).value, 1e-9) << name;
  }
}

TEST_F(AttackEvaluation, BatchesOfAnEarlierVersionAreAttackedAgain) {
  const AttackWords words{.attacks = "pgd", .eps = "4/255", .assignments = {"pgd.steps=3"}};
  const std::vector<std::string> whole = lines(attack(words));
  const int64_t passes = task_.num_passes;
  std::string text = read_file(state_);
  for (size_t at = text.find(",\"outcomes\""); at != std::string::npos;
       at = text.find(",\"outcomes\"")) {
    text.erase(at, text.find_first_of(",}", at + 1) - at);
  }
  write_file_atomically(state_, text);
  EXPECT_EQ(lines(attack(words)), whole);
  EXPECT_EQ(task_.num_passes, 2 * passes);
  ASSERT_EQ(notices_.size(), 1) << "for all batches";
  EXPECT_NE(notices_[0].find("attacks.jsonl: some batches are of an earlier version, which did not "
                             "say what became of each picture (they are attacked again)"),
            std::string::npos)
      << notices_[0];
  EXPECT_EQ(lines(attack(words)), whole);
  EXPECT_EQ(task_.num_passes, 2 * passes) << "now they are known";
  EXPECT_EQ(notices_.size(), 1);

  // What does not fit together was damaged.
  fs::remove(state_);
  attack(words);
  text = read_file(state_);
  const size_t outcome = text.rfind("\"outcomes\":\"") + 12;
  text[outcome] = text[outcome] == '1' ? '0' : '1';
  write_file_atomically(state_, text);
  EXPECT_EQ(lines(attack(words)), whole);
  ASSERT_EQ(notices_.size(), 2);
  EXPECT_NE(
      notices_[1].find("label outcomes does not fit the counts (its batch is attacked again)"),
      std::string::npos)
      << notices_[1];
}

TEST_F(AttackEvaluation, AnotherCaseStartsOver) {
  const AttackWords words{.attacks = "pgd", .eps = "4/255", .assignments = {"pgd.steps=3"}};
  attack(words);
  const auto passes_of = [&](const AttackWords& changed) {
    task_.num_passes = 0;
    attack(changed);
    return task_.num_passes;
  };
  EXPECT_EQ(passes_of(words), 0);
  AttackWords other = words;
  other.eps = "4.0001/255";
  EXPECT_GT(passes_of(other), 0);
  other = words;
  other.assignments = {"pgd.steps=4"};
  EXPECT_GT(passes_of(other), 0);
  other = words;
  other.profile = "published";
  EXPECT_GT(passes_of(other), 0);
  other = words;
  other.metric_gradient = "detached";
  EXPECT_GT(passes_of(other), 0);
  {
    const at::NoGradGuard no_grad;
    task_.model().parameters().front().view(-1)[0].add_(0.5);
  }
  EXPECT_GT(passes_of(words), 0) << "other weights";
  eval_options_.split = "train";
  EXPECT_GT(passes_of(words), 0) << "other data";
}

TEST_F(AttackEvaluation, ThePublishedProfileIsAsReleased) {
  const at::Tensor clean = task_.normalize(task_.pixels);
  std::set<std::string> estimators;
  at::Tensor last;
  task_.hook = [&](const at::Tensor& x, const nn::Pass& pass) {
    EXPECT_EQ(pass.metric_low, 0.3);  // of a random metric
    estimators.insert(pass.metric_estimator ? std::string(to_string(*pass.metric_estimator)) : "");
    EXPECT_FALSE(pass.gradient_through_metric.value_or(true));
    last = x.detach().clone();
  };
  eval_options_.batch_size = 22;
  const std::vector<Record> records =
      attack({.attacks = "fgsm", .eps = "1/255", .profile = "published"});
  EXPECT_EQ(estimators, std::set<std::string>{"median"});
  // eps is in units of the normalized picture, which has no box: all numbers moved by eps.
  EXPECT_LE(((last - clean).abs() - 1.0 / 255).abs().max().item<double>(), 1e-6);
  EXPECT_EQ(std::get<std::string>(records[0].labels.at("eps_unit")), "normalized");
  // It led away from predictions, true or not, by the gradient that does not see the metric.
  task_.hook = nullptr;
  const at::Tensor predicted =
      attack::plain_logits(
          [this](const at::Tensor& x) { return support::logits_of(task_, x, true); }, clean)
          .argmax(1);
  const at::Tensor gradient =
      attack::loss_gradient(
          [this](const at::Tensor& x) {
            auto pass = nn::Pass::of_attack(/*gradient_through_metric=*/false);
            return task_.forward({.input = x, .is_prepared = true}, pass);
          },
          clean, [&](const at::Tensor& z) { return attack::cross_entropy(z, predicted); })
          .gradient;
  EXPECT_TRUE(at::equal((last - clean).sign(), gradient.sign()));

  // The attacks of AutoAttack have the true labels and the box of pixels.
  tasks::Dump dump;
  dump_ = &dump;
  attack({.attacks = "apgd-ce", .eps = "1/255", .profile = "published"});
  const at::Tensor x = at::cat(dump.at("adversarial"));
  const at::Tensor changed = (x != at::cat(dump.at("clean"))).flatten(1).any(1);
  EXPECT_GT(changed.sum().item<int64_t>(), 0);
  const at::Tensor boxed = x.index_select(0, changed.nonzero().squeeze(1));
  EXPECT_GE(boxed.min().item<double>(), 0);
  EXPECT_LE(boxed.max().item<double>(), 1);
  EXPECT_FALSE((changed & (predicted != task_.targets)).any().item<bool>());
}

TEST_F(AttackEvaluation, SeeingThroughTheMetricIsStronger) {
  const std::vector<Record> records = attack({.attacks = "pgd",
                                              .eps = "1/255,2/255,3/255,4/255,5/255,6/255,7/255",
                                              .metric_gradient = "both"});
  std::map<std::string, double> robust;
  for (const Record& record : records) {
    if (record.metric != "robust_accuracy") continue;
    robust[std::get<std::string>(record.labels.at("metric_gradient"))] += record.value;
  }
  EXPECT_LT(robust.at("through"), robust.at("detached"));
}

TEST_F(AttackEvaluation, TheDumpShowsWhatWasCounted) {
  tasks::Dump dump;
  dump_ = &dump;
  const std::vector<Record> records = attack({.attacks = "pgd", .eps = "8/255"});
  const at::Tensor clean = at::cat(dump.at("clean")), x = at::cat(dump.at("adversarial"));
  const at::Tensor labels = at::cat(dump.at("labels"));
  EXPECT_TRUE(at::equal(clean, task_.pixels));
  EXPECT_LE((x.to(at::kDouble) - clean.to(at::kDouble)).abs().max().item<double>(), 8.0 / 255);
  EXPECT_TRUE(at::equal(labels, task_.targets));
  const auto accuracy = [&](const char* logits) {
    const at::Tensor right = at::cat(dump.at(logits)).argmax(1) == labels;
    return 100.0 * right.sum().item<double>() / 22;
  };
  EXPECT_DOUBLE_EQ(accuracy("clean_logits"), find(records, "clean_accuracy", "pgd").value);
  EXPECT_DOUBLE_EQ(accuracy("adversarial_logits"), find(records, "robust_accuracy", "pgd").value);
  const at::NoGradGuard no_grad;
  EXPECT_TRUE(
      at::equal(support::logits_of(task_, x, false), at::cat(dump.at("adversarial_logits"))));
}

TEST_F(AttackEvaluation, FourAttacksHaveAMean) {
  const std::vector<Record> records = attack(
      {.attacks = "apgd-ce,apgd-t,fab-t,square",
       .eps = "3/255",
       .assignments = {"apgd-ce.steps=5", "apgd-t.steps=3", "fab-t.steps=3", "square.queries=5"}});
  double sum = 0;
  for (const char* name : {"apgd-ce", "apgd-t", "fab-t", "square"}) {
    sum += find(records, "robust_accuracy", name).value;
  }
  EXPECT_DOUBLE_EQ(find(records, "robust_accuracy", "individual-mean").value, sum / 4);
  EXPECT_EQ(
      std::get<std::string>(find(records, "robust_accuracy", "square").labels.at("attack_options")),
      "queries=5");
}

TEST_F(AttackEvaluation, AutoAttackTellsStagesAndFlags) {
  const std::vector<Record> records =
      attack({.attacks = "auto-attack",
              .eps = "3/255",
              .assignments = {"auto-attack.apgd.steps=5", "auto-attack.apgd_t.steps=3",
                              "auto-attack.fab.steps=3", "auto-attack.square.queries=5"}});
  std::vector<double> after;
  for (const Record& record : records) {
    if (record.metric == "robust_accuracy_after") after.push_back(record.value);
  }
  ASSERT_EQ(after.size(), 4);
  EXPECT_TRUE(std::is_sorted(after.rbegin(), after.rend()));
  const Record& robust = find(records, "robust_accuracy", "auto-attack");
  EXPECT_EQ(robust.value, after.back());
  EXPECT_LE(robust.value, find(records, "clean_accuracy", "auto-attack").value);
  EXPECT_EQ(robust.labels.at("flag_few_classes"), LabelValue(true)) << "6 classes, 9 targets";
  for (const char* flag : {"flag_randomised", "flag_probabilities", "flag_zero_gradients"}) {
    EXPECT_EQ(robust.labels.at(flag), LabelValue(false)) << flag;
  }
  EXPECT_TRUE(robust.labels.contains("flag_square_beats_gradients"));
}

TEST_F(AttackEvaluation, A2AStageThatWasSkippedIsMarked) {
  const AttackPlan plan = make_attack_plan({.attacks = "auto-attack", .eps = "1/255"});
  const AttackScore score{.count = 4,
                          .clean_top1 = 4,
                          .robust_top1 = 2,
                          .has_few_classes = true,
                          .outcomes = "1100",
                          .stages = {{"apgd-ce", 3}, {"apgd-t", 3}, {"fab-t", 2}, {"square", 2}}};
  const std::unique_ptr<tasks::PictureSet> set = task_.picture_set(eval_options_);
  const auto skipped_with = [&](int64_t num_classes) {
    std::string skipped;
    for (const Record& record : attack_records(plan, {score}, num_classes, {}, *set)) {
      const bool is_stage = record.metric == "robust_accuracy_after";
      EXPECT_EQ(record.labels.contains("skipped"), is_stage) << record.metric;
      if (is_stage && std::get<bool>(record.labels.at("skipped"))) {
        skipped += std::get<std::string>(record.labels.at("stage"));
      }
      EXPECT_EQ(record.labels.contains("skipped_stages"), num_classes < 4) << record.metric;
    }
    return skipped;
  };
  EXPECT_EQ(skipped_with(3), "apgd-t");
  EXPECT_EQ(skipped_with(4), "");
}

TEST_F(AttackEvaluation, N1LogitsThatAreNotFiniteAreRefused) {
  {
    const at::NoGradGuard no_grad;
    task_.pixels[6].fill_(std::nanf(""));
  }
  EXPECT_EQ(test::error_message<RunError>([&] { attack({.attacks = "pgd", .eps = "1/255"}); }),
            "attack: logits must be finite, those of picture 6 are not (the training has diverged: "
            "train it again with a lower optimizer.learning_rate or optimizer.clip_norm)");
}

TEST_F(AttackEvaluation, TheModelIsLeftAsFound) {
  task_.model().train();
  at::Tensor weight = task_.model().parameters().front();
  weight.mutable_grad() = at::full_like(weight, 2);
  task_.hook = [&](const at::Tensor&, const nn::Pass&) {
    EXPECT_FALSE(task_.model().is_training());
    EXPECT_FALSE(weight.requires_grad());
    if (task_.num_passes == 7) throw std::runtime_error("a fault");
  };
  EXPECT_THROW(attack({.attacks = "pgd", .eps = "8/255"}), std::runtime_error);
  EXPECT_TRUE(task_.model().is_training());
  EXPECT_TRUE(weight.requires_grad());
  EXPECT_TRUE((weight.grad() == 2).all().item<bool>());
}

TEST_F(AttackEvaluation, ATaskWithoutPicturesIsRefused) {
  const std::unique_ptr<tasks::Task> task = make_toy_task(toy_run_options(1));
  ToyEvalOptions options;
  const AttackPlan plan = make_attack_plan({.attacks = "pgd", .eps = "0.1"});
  EXPECT_EQ(
      test::error_message<UsageError>([&] {
        evaluate_attacks({.task = *task, .eval_options = options, .plan = plan, .state = state_});
      }),
      "attack: needs a run whose task classifies pictures, this one's is toy (a text is "
      "damaged by: elliptical eval RUN --swap 0.025)");
  EXPECT_FALSE(fs::exists(state_));
}

}  // namespace
}  // namespace elliptical::run::testing
