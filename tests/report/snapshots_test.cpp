// SPDX-License-Identifier: MIT
#include "elliptical/report/snapshots.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <list>
#include <map>

#include "elliptical/base/files.h"
#include "elliptical/base/safetensors.h"
#include "tests/report/decoded.h"
#include "tests/support/temporary_folder.h"

namespace elliptical::report::snapshots_test {
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

/// A file of 16 zeros whose header claims other shapes than `make` gives.
struct Claim {
  std::vector<int64_t> attention, queries, metric;
};

class HostileSnapshots : public Snapshots {
 protected:
  json read_claim(const Claim& claim, const std::map<std::string, std::string>& metadata = {}) {
    const auto zeros = [this](const std::vector<int64_t>& shape) {
      int64_t count = 1;
      for (const int64_t size : shape) count *= size;
      return std::as_bytes(
          std::span(kept_.emplace_back(static_cast<size_t>(std::max<int64_t>(0, count)), 0.0F)));
    };
    std::vector<TensorBytes> tensors;
    const auto add = [&](const std::string& name, const std::vector<int64_t>& shape) {
      tensors.push_back({"layers.0." + name, ElementType::kF32, shape, zeros(shape)});
    };
    add("attention", claim.attention);
    add("queries", claim.queries);
    add("keys", claim.queries);
    if (!claim.metric.empty()) add("metric", claim.metric);
    const auto path = folder_.path() / "snapshot.safetensors";
    FileWriter writer(path);
    write_safetensors(tensors, metadata,
                      [&](std::span<const std::byte> piece) { writer.write(piece); });
    writer.finish();
    return read_snapshots({{.folder = folder_.path(), .snapshot = path}}, {0}, problems_);
  }

  std::list<std::vector<float>> kept_;
};

// A few hundred bytes: the product of the dimensions is 0, so the file is as long as it says.
TEST_F(HostileSnapshots, R1_HeadsWithoutTokensAreRefusedAtOnce) {
  const int64_t many = int64_t{1} << 44;
  EXPECT_TRUE(read_claim({{many, 0, 0}, {many, 0, 1}, {1, 1, 1}}).empty());
  EXPECT_TRUE(read_claim({{0, many, many}, {0, many, 1}, {}}).empty());
  EXPECT_TRUE(read_claim({{1, 1, 1}, {1, 1, 0}, {}}).empty());
  ASSERT_EQ(problems_.size(), 3U);
  EXPECT_NE(problems_[0].find("layers.0.attention must be F32 with 3 dimensions, none of them 0, "
                              "and at most 1 GB, is something else (its heads are not shown)"),
            std::string::npos)
      << problems_[0];
  EXPECT_NE(problems_[2].find("layers.0.queries must be F32"), std::string::npos) << problems_[2];
}

// One metric for all heads of 2^20 numbers, and 2^20 heads: 4 TB when it is expanded first.
TEST_F(HostileSnapshots, R1_MetricsAreComparedBeforeTheyAreExpanded) {
  const int64_t many = int64_t{1} << 20;
  EXPECT_TRUE(read_claim({{many, 1, 1}, {many, 1, 1}, {1, 1, many}}).empty());
  ASSERT_EQ(problems_.size(), 1U);
  EXPECT_NE(problems_[0].find("layers.0.metric must be (1, 1, 1), has another shape"),
            std::string::npos)
      << problems_[0];
}

TEST_F(HostileSnapshots, R1_MoreHeadsThanAPageCanHoldAreRefused) {
  EXPECT_TRUE(read_claim({{2000, 1, 1}, {2000, 1, 1}, {}}, {{"words", R"(["w"])"}}).empty());
  ASSERT_EQ(problems_.size(), 1U);
  EXPECT_NE(problems_[0].find("layers.0.attention must have at most 1024 heads, has 2000"),
            std::string::npos)
      << problems_[0];
}

TEST_F(HostileSnapshots, R1_LongMetadataAreRefused) {
  const std::string word = "[\"" + std::string(2'000'000, 'w') + "\"]";
  EXPECT_TRUE(read_claim({{1, 1, 1}, {1, 1, 1}, {}}, {{"words", word}}).empty());
  EXPECT_TRUE(read_claim({{1, 1, 1}, {1, 1, 1}, {}},
                         {{"words", R"(["w"])"}, {"split", std::string(5000, 's')}})
                  .empty());
  ASSERT_EQ(problems_.size(), 2U);
  EXPECT_NE(problems_[0].find("words of the metadata must have at most 1048576 bytes, has 2000004"),
            std::string::npos);
  EXPECT_NE(problems_[1].find("split of the metadata must have at most 4096 bytes, has 5000"),
            std::string::npos);
}

}  // namespace
}  // namespace elliptical::report::snapshots_test
