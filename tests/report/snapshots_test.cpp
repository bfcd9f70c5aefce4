// SPDX-License-Identifier: MIT
#include "elliptical/report/snapshots.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "elliptical/base/files.h"
#include "elliptical/base/safetensors.h"
#include "tests/report/decoded.h"
#include "tests/support/temporary_folder.h"

namespace elliptical::report {
namespace {

using nlohmann::json;
using test::decoded;

struct Made {
  int64_t H = 2, N = 4, D = 3;
  std::vector<float> attention, vectors, metric;
  std::string words;
  bool is_of_pictures = false, has_maps = true;
};

/// Uniform attention over all tokens, vectors 0, 1, 2, ..., one metric for all tokens of a head.
Made make(int64_t N) {
  Made made{.N = N};
  made.attention.assign(static_cast<size_t>(made.H * N * N), 1.0F / static_cast<float>(N));
  for (int64_t i = 0; i < made.H * N * made.D; ++i) made.vectors.push_back(static_cast<float>(i));
  for (int64_t i = 0; i < made.H * made.D; ++i) made.metric.push_back(static_cast<float>(i + 1));
  json words = json::array();
  for (int64_t n = 0; n < N; ++n) words.push_back("w" + std::to_string(n));
  made.words = words.dump();
  return made;
}

RunData write(const Made& made, const std::filesystem::path& folder) {
  const auto bytes = [](const auto& values) { return std::as_bytes(std::span(values)); };
  std::vector<TensorBytes> tensors = {
      {"layers.0.attention", ElementType::kF32, {made.H, made.N, made.N}, bytes(made.attention)},
      {"layers.0.queries", ElementType::kF32, {made.H, made.N, made.D}, bytes(made.vectors)},
      {"layers.0.keys", ElementType::kF32, {made.H, made.N, made.D}, bytes(made.vectors)},
      {"layers.0.metric", ElementType::kF32, {made.H, 1, made.D}, bytes(made.metric)}};
  if (!made.has_maps) tensors.clear();
  std::map<std::string, std::string> metadata = {{"step", "7"}, {"split", "valid"}};
  const std::vector<float> pixels(12, 0.5F);
  if (made.is_of_pictures) {
    tensors.push_back({"pictures", ElementType::kF32, {1, 3, 2, 2}, bytes(pixels)});
    metadata["prefix_tokens"] = "2";
  } else {
    metadata["words"] = made.words;
  }
  RunData run{.folder = folder, .snapshot = folder / "snapshot.safetensors"};
  FileWriter writer(run.snapshot);
  write_safetensors(tensors, metadata,
                    [&](std::span<const std::byte> piece) { writer.write(piece); });
  writer.finish();
  return run;
}

class Snapshots : public ::testing::Test {
 protected:
  test::TemporaryFolder folder_;
  std::vector<std::string> problems_;

  json read(const Made& made, size_t max_bytes = kSnapshotBytes) {
    return read_snapshots({write(made, folder_.path())}, {0}, problems_, max_bytes);
  }
};

TEST(Base64, IsThatOfRfc4648) {
  EXPECT_EQ(base64(""), "");
  EXPECT_EQ(base64("f"), "Zg==");
  EXPECT_EQ(base64("fo"), "Zm8=");
  EXPECT_EQ(base64("foo"), "Zm9v");
  EXPECT_EQ(base64("\xFF\xFE\xFD"), "//79");
}

TEST_F(Snapshots, KeepShortTextsWhole) {
  const json snapshot = read(make(4)).at(0);
  EXPECT_EQ(snapshot["words"], json({"w0", "w1", "w2", "w3"}));
  EXPECT_EQ(snapshot["step"], "7");
  EXPECT_FALSE(snapshot.contains("prefix"));
  const json& layer = snapshot["layers"][0];
  EXPECT_EQ(layer["tokens"], 4);
  EXPECT_EQ(layer["cell"], 1);
  EXPECT_EQ(layer["shown"], 4);
  EXPECT_FALSE(layer.contains("weights"));  // the map has them
  EXPECT_EQ(decoded(layer["map"]), std::string(2 * 4 * 4, '\xFE'));
  EXPECT_FLOAT_EQ(layer["map_scales"][1].get<float>(), 0.25F);
  const std::string queries = decoded(layer["queries"]), metric = decoded(layer["metric"]);
  ASSERT_EQ(queries.size(), 2U * 2 * 4 * 3);
  EXPECT_EQ(queries.substr(46), "\xFF\x7F");  // the largest
  ASSERT_EQ(metric.size(), queries.size());   // repeated for each token
  EXPECT_EQ(metric.substr(0, 6), metric.substr(6, 6));
  EXPECT_TRUE(problems_.empty());
}

TEST_F(Snapshots, OfLongTextsAreAveragedAndFitTheirBytes) {
  const size_t max_bytes = 4000;
  const json snapshots = read(make(300), max_bytes);
  const json& snapshot = snapshots.at(0);
  const json& layer = snapshot["layers"][0];
  const auto cell = layer["cell"].get<int64_t>(), cells = (300 + cell - 1) / cell;
  EXPECT_GT(cell, 1);
  const std::string map = decoded(layer["map"]);
  ASSERT_EQ(map.size(), static_cast<size_t>(2 * cells * cells));
  // Rows of cells still sum to one: each root is a share of the largest weight.
  double sum = 0;
  for (int64_t key = 0; key < cells; ++key) {
    const double root = static_cast<unsigned char>(map[static_cast<size_t>(key)]) / 254.0;
    sum += root * root * layer["map_scales"][0].get<double>();
  }
  EXPECT_NEAR(sum, 1.0, 0.01);  // a byte for each root
  EXPECT_LT(layer.dump().size(), max_bytes + 500);
}

TEST_F(Snapshots, MarkWhatIsNoNumber) {
  Made made = make(4);
  made.attention[5] = std::nanf("");
  made.vectors[1] = std::numeric_limits<float>::infinity();
  const json layer = read(made).at(0)["layers"][0];
  EXPECT_EQ(decoded(layer["map"])[5], '\xFF');
  EXPECT_EQ(decoded(layer["queries"]).substr(2, 2), std::string("\x00\x80", 2));
}

TEST_F(Snapshots, OfPicturesHaveTokensInFrontInsteadOfWords) {
  Made made = make(6);
  made.is_of_pictures = true;
  const json snapshot = read(made).at(0);
  EXPECT_EQ(snapshot["prefix"], 2);
  EXPECT_FALSE(snapshot.contains("words"));
  EXPECT_EQ(snapshot["layers"][0]["tokens"], 6);
  EXPECT_TRUE(problems_.empty());
  made.has_maps = false;  // heat maps only: nothing to be shown, and nothing wrong
  EXPECT_TRUE(read(made).empty());
  EXPECT_TRUE(problems_.empty());
  made.is_of_pictures = false;
  EXPECT_TRUE(read(made).empty());
  ASSERT_EQ(problems_.size(), 1U);
  EXPECT_NE(problems_[0].find("must have layers.0.attention, has not"), std::string::npos);
}

TEST_F(Snapshots, ThatAreWrongAreNamed) {
  Made made = make(4);
  made.words = R"(["too", "few"])";
  EXPECT_TRUE(read(made).empty());
  ASSERT_EQ(problems_.size(), 1U);
  EXPECT_NE(problems_[0].find("words of the metadata must be a list of 4 texts"),
            std::string::npos);
}

}  // namespace
}  // namespace elliptical::report
