// SPDX-License-Identifier: MIT
#include "elliptical/report/attack_pictures.h"

#include <gtest/gtest.h>

#include <limits>

#include "elliptical/base/files.h"
#include "elliptical/base/safetensors.h"
#include "elliptical/report/snapshots.h"
#include "tests/support/temporary_folder.h"

namespace elliptical::report {
namespace {

using nlohmann::json;

/// B grey pictures of class 1 that the model knows; `after` says what it calls them when attacked.
struct Made {
  int64_t B = 2, side = 2;
  std::vector<int64_t> labels, after;
  std::vector<float> clean, attacked;
  std::string profile = "strict";
  std::string class_names = R"(["cat", "<b>dog", "bird"])";
};

Made make(const std::vector<int64_t>& after, int64_t side) {
  Made made{.B = static_cast<int64_t>(after.size()), .side = side, .after = after};
  made.labels.assign(after.size(), 1);
  made.clean.assign(after.size() * static_cast<size_t>(3 * side * side), 0.4F);
  made.attacked = made.clean;
  return made;
}

class AttackPictures : public ::testing::Test {
 protected:
  test::TemporaryFolder folder_;
  std::vector<std::string> problems_;

  json read(const Made& made, size_t max_bytes = kAttackPictureBytes) {
    const auto bytes = [](const auto& values) { return std::as_bytes(std::span(values)); };
    std::vector<float> before, after;
    for (const int64_t prediction : made.after) {
      for (int64_t k = 0; k < 3; ++k) {
        before.push_back(k == 1 ? 1.0F : 0.0F);
        after.push_back(k == prediction ? 1.0F : 0.0F);
      }
    }
    const std::vector<int64_t> shape = {made.B, 3, made.side, made.side};
    const RunData run{.folder = folder_.path(),
                      .attack_pictures = folder_.path() / "attack.safetensors"};
    FileWriter writer(run.attack_pictures);
    write_safetensors({{"clean", ElementType::kF32, shape, bytes(made.clean)},
                       {"adversarial", ElementType::kF32, shape, bytes(made.attacked)},
                       {"labels", ElementType::kI64, {made.B}, bytes(made.labels)},
                       {"clean_logits", ElementType::kF32, {made.B, 3}, bytes(before)},
                       {"adversarial_logits", ElementType::kF32, {made.B, 3}, bytes(after)}},
                      {{"attack", "pgd"},
                       {"class_names", made.class_names},
                       {"eps", "1/255"},
                       {"profile", made.profile}},
                      [&](std::span<const std::byte> piece) { writer.write(piece); });
    writer.finish();
    return read_attack_pictures({run}, {0}, problems_, max_bytes);
  }

  void expect_problem(const Made& made, const std::string& text) {
    problems_.clear();
    EXPECT_TRUE(read(made).empty());
    ASSERT_EQ(problems_.size(), 1U);
    EXPECT_NE(problems_[0].find(text), std::string::npos) << problems_[0];
    EXPECT_NE(problems_[0].find("(its pictures are not shown)"), std::string::npos);
  }
};

TEST_F(AttackPictures, WhosePredictionChangedComeFirst) {
  const json found = read(make({1, 2, 1, 0}, 2)).at(0);
  EXPECT_EQ(found["attack"], "pgd");
  EXPECT_EQ(found["eps"], "1/255");
  EXPECT_EQ(found["cell"], 1);
  std::vector<int64_t> after;
  for (const json& picture : found["pictures"]) {
    after.push_back(picture["after"]);
    EXPECT_EQ(picture["before"], 1);
    EXPECT_EQ(picture["label"], 1);
  }
  EXPECT_EQ(after, (std::vector<int64_t>{2, 0, 1, 1}));
  EXPECT_TRUE(problems_.empty());
}

TEST_F(AttackPictures, CallClassesAsTheDataDo) {
  Made made = make({2}, 2);
  const auto names = [&] { return read(made).at(0)["pictures"][0]["names"]; };
  EXPECT_EQ(names(), json({"<b>dog", "<b>dog", "bird"}));
  made.class_names = R"(["cat", "dog"])";  // too few
  EXPECT_EQ(names(), json({"dog", "dog", "class 2"}));
  for (const char* wrong : {"", "{", "3", "{}"}) {
    made.class_names = wrong;
    EXPECT_EQ(names(), json({"class 1", "class 1", "class 2"}));
  }
  made.labels = {-1};
  EXPECT_EQ(names()[0], "class -1");
  EXPECT_TRUE(problems_.empty());
}

TEST_F(AttackPictures, HavePixelsAndSignedDifferences) {
  Made made = make({2}, 2);
  made.attacked[0] += 0.02F;       // red of the first pixel
  made.attacked[4 + 3] -= 0.005F;  // green of the last
  const json picture = read(made).at(0)["pictures"][0];
  EXPECT_EQ(picture["clean"], base64(std::string(12, 102)));  // 0.4 * 255
  std::string differences(12, 0);
  differences[0] = 127;
  differences[3 * 3 + 1] = static_cast<char>(-32);  // a quarter of it
  EXPECT_EQ(picture["difference"], base64(differences));
  EXPECT_NEAR(picture["largest"].get<double>(), 0.02, 1e-6);  // float
}

TEST_F(AttackPictures, ThatWereNotChangedHaveNoDifference) {
  const json picture = read(make({1}, 2)).at(0)["pictures"][0];
  EXPECT_EQ(picture["difference"], base64(std::string(12, 0)));
  EXPECT_EQ(picture["largest"], 0);
}

TEST_F(AttackPictures, ThatAreLargeAreAveraged) {
  Made made = make({2}, 225);  // the last cells are narrower
  for (size_t i = 0; i < made.attacked.size(); ++i) made.attacked[i] += i % 2 == 0 ? 0.1F : 0.0F;
  const json found = read(made).at(0);
  EXPECT_EQ(found["cell"], 3);
  EXPECT_EQ(found["width"], 75);
  EXPECT_EQ(found["pictures"][0]["clean"], base64(std::string(75 * 75 * 3, 102)));
  EXPECT_LT(found["pictures"][0]["largest"], 0.06);  // five of nine
}

TEST_F(AttackPictures, FitTheirBytes) {
  const json found = read(make(std::vector<int64_t>(20, 2), 224), 60'000).at(0);
  EXPECT_LT(found.dump().size(), 61'000U);
  EXPECT_GE(found["pictures"].size(), 3U);
  EXPECT_EQ(read(make(std::vector<int64_t>(20, 2), 32)).at(0)["pictures"].size(),
            kMaxAttackPictures);
}

TEST_F(AttackPictures, ThatAreWrongAreNamed) {
  Made made = make({1, 2}, 2);
  made.profile = "published";
  expect_problem(made, "must be of the strict profile");
  made = make({1, 2}, 2);
  made.attacked[3] = std::numeric_limits<float>::quiet_NaN();
  expect_problem(made, "clean and adversarial must be in [0, 1], are not");
  made.attacked[3] = 1.5F;
  expect_problem(made, "clean and adversarial must be in [0, 1], are not");
  expect_problem(make({}, 2), "clean must be F32 with 4 dimensions, none of them 0");
}

TEST_F(AttackPictures, OfOtherFilesAreNamed) {
  const RunData run{.folder = folder_.path(),
                    .attack_pictures = folder_.path() / "attack.safetensors"};
  const auto problem = [&](const std::vector<TensorBytes>& tensors) {
    FileWriter writer(run.attack_pictures);
    write_safetensors(tensors, {}, [&](std::span<const std::byte> piece) { writer.write(piece); });
    writer.finish();
    problems_.clear();
    EXPECT_TRUE(read_attack_pictures({run}, {0}, problems_).empty());
    return problems_.at(0);
  };
  EXPECT_NE(problem({}).find("clean must be F32 with 4 dimensions, none of them 0, and at most 1 "
                             "GB, is missing (its pictures are not shown)"),
            std::string::npos);
  const int64_t many = int64_t{1} << 44;
  EXPECT_NE(problem({{"clean", ElementType::kF32, {many, 3, 0, 0}, {}},
                     {"adversarial", ElementType::kF32, {many, 3, 0, 0}, {}}})
                .find("is something else"),
            std::string::npos);
  const std::vector<float> numbers(12, 0.5F);
  const auto bytes = std::as_bytes(std::span(numbers));
  EXPECT_NE(problem({{"clean", ElementType::kF32, {12}, bytes}}).find("is something else"),
            std::string::npos);
  const std::vector<int64_t> labels = {1, 2};
  const TensorBytes clean = {"clean", ElementType::kF32, {1, 3, 2, 2}, bytes},
                    attacked = {"adversarial", ElementType::kF32, {1, 3, 2, 2}, bytes};
  EXPECT_NE(
      problem(
          {clean, attacked, {"labels", ElementType::kI64, {2}, std::as_bytes(std::span(labels))}})
          .find("labels must be (1), has another shape"),
      std::string::npos);
}

}  // namespace
}  // namespace elliptical::report
