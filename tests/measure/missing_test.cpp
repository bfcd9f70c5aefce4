// SPDX-License-Identifier: MIT
#include "elliptical/measure/missing.h"

#include <gtest/gtest.h>

#include "elliptical/tasks/classify_image_measures.h"

namespace elliptical::measure {
namespace {

using Labels = std::map<std::string, LabelValue>;

constexpr int64_t kLast = 9, kPictures = 20;
const AttackKind kPgd{
    .name = "pgd", .eps = 0.1, .profile = "strict", .metric_gradient = "through", .seed = 1};

/// A number and its two parts, as an evaluation or an attack leaves them.
void add(std::vector<Record>& records,
         const std::string& metric,
         Labels labels,
         int64_t count = kPictures) {
  labels.insert({{"data", std::string("d")},
                 {"perturbation", std::string("none")},
                 {"source", std::string("eval")},
                 {"split", std::string("test")},
                 {"step", kLast}});
  records.push_back({metric, 50, count, labels});
  labels["cut"] = std::string("balanced");
  labels["pictures"] = count;
  for (int64_t block = 0; block < 2; ++block) {
    labels["block"] = block;
    records.push_back({"block_" + metric, 50, count / 2, labels});
  }
}

std::vector<Record> trained() {
  std::vector<Record> records;
  add(records, "accuracy", {{"source", std::string("train")}, {"split", std::string("valid")}});
  return records;
}

const Labels kFog = {{"perturbation", std::string("corruption")},
                     {"corruption", std::string("fog")},
                     {"corruption_seed", int64_t{1}},
                     {"severity", int64_t{3}}};
const Labels kAttack = {{"source", std::string("attack")},
                        {"attack", kPgd.name},
                        {"eps", kPgd.eps},
                        {"profile", kPgd.profile},
                        {"metric_gradient", kPgd.metric_gradient},
                        {"attack_seed", kPgd.seed}};
const WantedMeasurements kWanted{
    .split = "test",
    .damages = {{.perturbation = "corruption", .kind = "fog", .strength = 3}},
    .attacks = {kPgd}};

const std::vector<size_t> kFirst = {0};

Missing missing(const std::vector<Record>& records, const WantedMeasurements& wanted = kWanted) {
  return missing_of(records, kLast, tasks::kClassifyImageMeasures, wanted);
}

TEST(Missing, IsEverythingOfARunWithoutItsLastValidation) {
  EXPECT_TRUE(missing({}).validation);
  std::vector<Record> records;
  add(records, "accuracy", {});  // an evaluation is no validation while training
  EXPECT_TRUE(missing(records).validation);
  EXPECT_TRUE(missing(records).clean);
}

TEST(Missing, GoesAwayOneByOne) {
  std::vector<Record> records = trained();
  EXPECT_FALSE(missing(records).validation);
  EXPECT_TRUE(missing(records).clean);
  add(records, "accuracy", {});
  EXPECT_FALSE(missing(records).clean);
  EXPECT_EQ(missing(records).damages, kFirst);
  EXPECT_EQ(missing(records).attacks, (std::vector<size_t>{0}));
  add(records, "accuracy", kFog);
  EXPECT_TRUE(missing(records).damages.empty());
  add(records, "robust_accuracy", kAttack);
  EXPECT_TRUE(missing(records).attacks.empty());
}

TEST(Missing, IsWhatWasMeasuredOtherwise) {
  std::vector<Record> records = trained();
  add(records, "accuracy", {});
  Labels other = kFog;
  other["corruption_seed"] = int64_t{2};
  add(records, "accuracy", other);
  EXPECT_EQ(missing(records).damages, kFirst) << "another seed than usual";
  other = kFog;
  other["severity"] = int64_t{5};
  add(records, "accuracy", other);
  EXPECT_EQ(missing(records).damages, kFirst) << "another severity";
  WantedMeasurements fewer = kWanted;
  fewer.num_pictures = 10;
  add(records, "accuracy", kFog);
  EXPECT_TRUE(missing(records).damages.empty());
  EXPECT_EQ(missing(records, fewer).damages, kFirst) << "of all pictures, ten are wanted";
  add(records, "robust_accuracy", kAttack, 10);
  EXPECT_FALSE(missing(records).attacks.empty()) << "of ten pictures, all are wanted";
  EXPECT_TRUE(missing(records, fewer).attacks.empty());
}

TEST(Missing, NamesEachDamageThatLacks) {
  WantedMeasurements two = kWanted;
  two.damages.push_back({.perturbation = "corruption", .kind = "snow", .strength = 3});
  std::vector<Record> records = trained();
  add(records, "accuracy", {});
  EXPECT_EQ(missing(records, two).damages, (std::vector<size_t>{0, 1}));
  add(records, "accuracy", kFog);
  EXPECT_EQ(missing(records, two).damages, std::vector<size_t>{1});
}

TEST(Missing, IsWhatHasNoParts) {
  std::vector<Record> records = trained();
  add(records, "accuracy", {});
  std::erase_if(records, [](const Record& record) {
    return record.labels.contains("block") &&
           record.labels.at("split") == LabelValue(std::string("test"));
  });
  EXPECT_TRUE(missing(records).clean);
}

TEST(Missing, IsNoDamageWhereNoneIsWanted) {
  EXPECT_TRUE(missing(trained(), {.split = "test"}).damages.empty());
}

}  // namespace
}  // namespace elliptical::measure
