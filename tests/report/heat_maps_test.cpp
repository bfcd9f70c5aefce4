// SPDX-License-Identifier: MIT
#include "elliptical/report/heat_maps.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>

#include "elliptical/base/files.h"
#include "elliptical/base/safetensors.h"
#include "tests/report/decoded.h"
#include "tests/support/temporary_folder.h"

namespace elliptical::report::heat_maps_test {
namespace {

using nlohmann::json;
using test::decoded;

/// P pictures of S by S, of one grey each; layers of H heads on a grid of G by G whose patch i has
/// the weight (i + 1) times that of the head.
struct Made {
  int64_t P = 2, S = 4, H = 2, G = 2, L = 2;
  float grey = 0.2F;
  std::vector<float> head_weights = {0.01F, 0.03F};
  std::string described = R"([{"number": 0, "class": "cat", "said": "cat"},
                              {"number": 5, "class": "<b>", "said": "dog"}])";
  std::map<std::string, std::vector<int64_t>> other_shapes = {};
};

class HeatMaps : public ::testing::Test {
 protected:
  test::TemporaryFolder folder_;
  std::vector<RunData> runs_;
  std::vector<size_t> chosen_;
  std::vector<std::string> problems_;

  void add(const Made& made) {
    std::vector<float> pixels, heat, rollout;
    for (int64_t i = 0; i < made.P * 3 * made.S * made.S; ++i) {
      const auto picture = static_cast<float>(i / (3 * made.S * made.S));
      pixels.push_back(made.grey + 0.1F * picture);
    }
    const int64_t size = made.G * made.G;
    for (int64_t i = 0; i < made.P * made.H * size; ++i) {
      const float weight = made.head_weights[static_cast<size_t>(i / size % made.H)];
      heat.push_back(weight * static_cast<float>(i % size + 1));
    }
    for (int64_t i = 0; i < made.P * size; ++i) rollout.push_back(static_cast<float>(i % size));
    std::map<std::string, std::pair<std::vector<int64_t>, std::vector<float>>> tensors;
    tensors["pictures"] = {{made.P, 3, made.S, made.S}, pixels};
    tensors["rollout"] = {{made.P, made.G, made.G}, rollout};
    for (int64_t layer = 0; layer < made.L; ++layer) {
      tensors["layers." + std::to_string(layer) + ".heat"] = {{made.P, made.H, made.G, made.G},
                                                              heat};
    }
    std::vector<TensorBytes> entries;
    for (auto& [name, tensor] : tensors) {
      if (made.other_shapes.contains(name)) tensor.first = made.other_shapes.at(name);
      entries.push_back(
          {name, ElementType::kF32, tensor.first, std::as_bytes(std::span(tensor.second))});
    }
    const auto path = folder_.path() / (std::to_string(runs_.size()) + ".safetensors");
    FileWriter writer(path);
    write_safetensors(entries, {{"pictures", made.described}, {"data", "d"}, {"split", "test"}},
                      [&](std::span<const std::byte> piece) { writer.write(piece); });
    writer.finish();
    chosen_.push_back(runs_.size());
    runs_.push_back({.folder = folder_.path(), .snapshot = path});
  }

  json read(size_t max_bytes = kHeatMapBytes) {
    return read_heat_maps(runs_, chosen_, problems_, max_bytes);
  }
};

TEST_F(HeatMaps, AreTheMeanAndEachHead) {
  add({});
  const json all = read();
  ASSERT_EQ(all["runs"].size(), 1U);
  const json& layer = all["runs"][0]["layers"][1];
  EXPECT_EQ(layer["heads"], 2);
  EXPECT_EQ(layer["grid"], 2);
  const std::string maps = decoded(layer["maps"]);
  ASSERT_EQ(maps.size(), 2U * 3 * 4);
  for (size_t map = 0; map < 6; ++map) {  // of each picture: mean, head 0, head 1
    const double scale = layer["scales"][map].get<double>();
    const double weight = std::array{0.02, 0.01, 0.03}[map % 3];
    for (size_t patch = 0; patch < 4; ++patch) {
      const double root = static_cast<unsigned char>(maps[4 * map + patch]) / 254.0;
      EXPECT_NEAR(root * root * scale, weight * static_cast<double>(patch + 1), 0.004 * scale);
    }
  }
  const json& shown = all["runs"][0]["shown"];
  EXPECT_EQ(shown[1]["said"], "dog");
  EXPECT_EQ(decoded(shown[1]["rollout"])[3], '\xFE');
  EXPECT_EQ(shown[1]["scale"], 3);
  EXPECT_EQ(all["pictures"][1]["name"], "<b>");
  EXPECT_EQ(all["pictures"][1]["number"], 5);
  EXPECT_EQ(decoded(all["pictures"][1]["pixels"]), std::string(48, 77));  // 0.3 * 255
  EXPECT_TRUE(problems_.empty());
}

TEST_F(HeatMaps, OfRunsThatSawTheSamePicturesShareThem) {
  add({});
  add({.H = 1});
  add({.grey = 0.5F});
  const json all = read();
  EXPECT_EQ(all["pictures"].size(), 4U);
  const auto places = [&](size_t run) {
    return std::pair(all["runs"][run]["shown"][0]["picture"].get<int>(),
                     all["runs"][run]["shown"][1]["picture"].get<int>());
  };
  EXPECT_EQ(places(0), std::pair(0, 1));
  EXPECT_EQ(places(1), std::pair(0, 1));
  EXPECT_EQ(places(2), std::pair(2, 3));
}

TEST_F(HeatMaps, OfTooManyPicturesAreLeftOut) {
  for (int i = 0; i < 6; ++i) add({.grey = 0.1F * static_cast<float>(i)});
  // Greys of neighbours are the same, but not their names.
  const json all = read();
  EXPECT_EQ(all["pictures"].size(), kMaxHeatPictures);
  EXPECT_EQ(all["runs"].size(), 4U);
  ASSERT_EQ(problems_.size(), 1U);
  EXPECT_EQ(problems_[0],
            "heat maps: at most 8 different pictures are shown, those of 2 more runs are left out "
            "(measure all runs on the same split)");
}

TEST_F(HeatMaps, OfLargePicturesFitTheirBytes) {
  const Made made{.S = 224, .G = 14, .L = 12};
  add(made);
  add(made);
  const json whole = read();
  EXPECT_EQ(whole["runs"][1]["layers"][11]["heads"], 2);
  EXPECT_EQ(whole["pictures"][0]["side"], 112);
  EXPECT_EQ(whole["pictures"].size(), 2U);
  const json less = read(20'000), least = read(10'000);
  EXPECT_EQ(less["runs"][1]["layers"][11]["heads"], 0) << "the mean is left";
  EXPECT_EQ(less["runs"][1]["shown"].size(), 2U);
  EXPECT_EQ(least["runs"][1]["shown"].size(), 1U);
  EXPECT_EQ(decoded(least["runs"][1]["layers"][0]["maps"]).size(), 14U * 14);
  for (const auto& [all, bytes] : {std::pair(&less, 20'000U), std::pair(&least, 10'000U)}) {
    EXPECT_LT((*all)["runs"].dump().size(), bytes);
  }
}

TEST_F(HeatMaps, MarkWhatIsNoNumber) {
  add({.head_weights = {std::numeric_limits<float>::quiet_NaN(), 0.01F}});
  const std::string maps = decoded(read()["runs"][0]["layers"][0]["maps"]);
  EXPECT_EQ(maps.substr(0, 8), std::string(8, '\xFF')) << "mean and first head";
  EXPECT_EQ(maps[11], '\xFE');
}

TEST_F(HeatMaps, ThatAreWrongAreNamed) {
  const auto expect_problem = [&](const Made& made, const std::string& text) {
    problems_.clear();
    runs_.clear();
    chosen_.clear();
    add(made);
    EXPECT_TRUE(read()["runs"].empty());
    ASSERT_EQ(problems_.size(), 1U) << text;
    EXPECT_NE(problems_[0].find(text), std::string::npos) << problems_[0];
    EXPECT_NE(problems_[0].find("(its heat maps are not shown)"), std::string::npos);
  };
  expect_problem({.other_shapes = {{"pictures", {2, 3, 8, 2}}}},
                 "pictures must be (P, 3, S, S), have another shape");
  expect_problem({.other_shapes = {{"pictures", {96}}}},
                 "pictures must be F32 with 4 dimensions, none of them 0, and at most 1 GB, is "
                 "something else");
  expect_problem({.other_shapes = {{"rollout", {1, 2, 4}}}},
                 "rollout must be (2, G, G), has another shape");
  expect_problem({.other_shapes = {{"layers.1.heat", {2, 2, 4, 1}}}},
                 "layers.1.heat must be (2, H, G, G), has another shape");
  expect_problem({.L = 0}, "must have layers.0.heat, has not");
  expect_problem({.described = ""}, "pictures of the metadata: must be JSON, is not");
  for (const char* described :
       {"3", "[]", R"([{"number": 1, "class": "a", "said": "a"}])",
        R"([{"number": "1", "class": "a", "said": "a"}, {"number": 1, "class": "a", "said": "a"}])",
        R"([{"number": 1, "class": 3, "said": "a"}, {"number": 1, "class": "a", "said": "a"}])"}) {
    expect_problem({.described = described},
                   "pictures of the metadata must be a list of 2 with number, class and said");
  }
}

TEST_F(HeatMaps, R1_WithoutPixelsOrTooLargeForAPageAreNamed) {
  add({.P = int64_t{1} << 44, .S = 0, .H = 1, .G = 0});
  add({.P = 1, .S = 1, .H = 1, .G = 600, .L = 6, .described = R"([{"number": 0, "class": "cat",
                                                                  "said": "cat"}])"});
  add({});
  EXPECT_EQ(read()["runs"].size(), 1U) << "the good one";
  ASSERT_EQ(problems_.size(), 2U);
  EXPECT_NE(problems_[0].find("pictures must be F32 with 4 dimensions, none of them 0"),
            std::string::npos);
  EXPECT_NE(problems_[1].find("maps of one picture must fit 2000000 bytes of a page, need 336"),
            std::string::npos)
      << problems_[1];
}

TEST_F(HeatMaps, AreNotThoseOfTextsOrOfWhatCanNotBeRead) {
  runs_ = {{.folder = folder_.path()},
           {.folder = folder_.path(), .snapshot = folder_.path() / "none.safetensors"}};
  chosen_ = {0, 1};
  EXPECT_TRUE(read()["runs"].empty());
  EXPECT_TRUE(problems_.empty()) << "the reader of snapshots names it";
}

}  // namespace
}  // namespace elliptical::report::heat_maps_test
