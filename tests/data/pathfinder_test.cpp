// SPDX-License-Identifier: MIT
#include "elliptical/data/sequence/pathfinder.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <utility>

#include "elliptical/base/errors.h"
#include "elliptical/data/image/codec.h"
#include "elliptical/data/sequence/pathfinder_set.h"
#include "tests/support/error_message.h"
#include "tests/support/temporary_folder.h"

namespace elliptical::data {
namespace {

namespace fs = std::filesystem;
using test::error_message;

/// Which of the two snakes have this point as an end.
std::vector<size_t> owners(const PathfinderPicture& picture, const PathfinderPoint& point) {
  std::vector<size_t> found;
  for (size_t i = 0; i < 2; ++i) {
    const PathfinderSnake& snake = picture.snakes[i];
    if (snake.tail == point || snake.tip() == point) found.push_back(i);
  }
  return found;
}

void check_picture(const PathfinderPicture& picture, const PathfinderOptions& options) {
  ASSERT_EQ(picture.pixels.size(), static_cast<size_t>(options.side * options.side));
  EXPECT_EQ(*std::min_element(picture.pixels.begin(), picture.pixels.end()), 0);
  EXPECT_EQ(*std::max_element(picture.pixels.begin(), picture.pixels.end()), 255);
  for (const PathfinderPoint& marker : picture.markers) {
    EXPECT_GE(std::min(marker.y, marker.x), 1);
    EXPECT_LE(std::max(marker.y, marker.x), options.side - 2);
    EXPECT_GT(picture.pixels[static_cast<size_t>(marker.y * options.side + marker.x)], 0);
  }
  // LRA-7: the label is 1 exactly when one snake has both markers at its ends.
  const auto first = owners(picture, picture.markers[0]);
  const auto second = owners(picture, picture.markers[1]);
  ASSERT_FALSE(first.empty());
  ASSERT_FALSE(second.empty());
  const bool is_ambiguous = first.size() + second.size() > 2;  // both snakes end in one pixel
  if (!is_ambiguous) {
    EXPECT_EQ(first == second, picture.label == 1);
  }
  for (const PathfinderSnake& snake : picture.snakes) {
    EXPECT_EQ(static_cast<int64_t>(snake.ends.size()), options.contour_length);
    // From end to end one stroke, between its ends and the next at most the margin on both sides.
    for (size_t i = 1; i < snake.ends.size(); ++i) {
      const double step = std::hypot(static_cast<double>(snake.ends[i].y - snake.ends[i - 1].y),
                                     static_cast<double>(snake.ends[i].x - snake.ends[i - 1].x));
      // Three times a point is rounded in both directions: two ends and the pivot between.
      EXPECT_LE(step, static_cast<double>(options.segment_length + 2 * options.margin) +
                          3 * std::numbers::sqrt2);
    }
  }
  EXPECT_LE(static_cast<int64_t>(picture.distractors.size()), options.num_distractors());
}

void check_pictures(const PathfinderOptions& options, int64_t count) {
  const PathfinderGenerator generator(options);
  int64_t connected = 0, distractors = 0, restarts = 0;
  for (int64_t i = 0; i < count; ++i) {
    const RandomKey key = pathfinder_key(5, options, Split::kTrain, i);
    const PathfinderPicture picture = generator.make(key);
    check_picture(picture, options);
    EXPECT_EQ(picture.label, pathfinder_label(key));
    connected += picture.label;
    distractors += static_cast<int64_t>(picture.distractors.size());
    restarts += picture.num_restarts;
  }
  // LRA-7: balanced within three standard deviations.
  EXPECT_NEAR(static_cast<double>(connected), static_cast<double>(count) / 2,
              1.5 * std::sqrt(static_cast<double>(count)));
  EXPECT_GT(distractors, count);  // at least one in the mean
  testing::Test::RecordProperty("distractors", std::to_string(distractors));
  testing::Test::RecordProperty("restarts", std::to_string(restarts));
}

TEST(Pathfinder, Lra7MarkersLabelsAndValues) {
  for (const int64_t length : {14, 9, 6}) {
    check_pictures({.contour_length = length}, length == 14 ? 2000 : 500);
  }
}

TEST(Pathfinder, Lra7AtTheSizeOfPathX) { check_pictures(pathfinder_128(), 100); }

TEST(Pathfinder, IsAFunctionOfSeedSplitAndNumber) {
  const auto open = [](Split split, uint64_t seed) {
    return open_sequences("pathfinder-32", split, {.seed = seed});
  };
  const auto set = open(Split::kTrain, 1), again = open(Split::kTrain, 1);
  again->get(3);
  EXPECT_EQ(set->get(12).ids, again->get(12).ids);
  EXPECT_NE(set->get(12).ids, set->get(13).ids);
  EXPECT_NE(set->get(12).ids, open(Split::kTest, 1)->get(12).ids);
  EXPECT_NE(set->get(12).ids, open(Split::kTrain, 2)->get(12).ids);
  EXPECT_NE(set->fingerprint(), open(Split::kTrain, 2)->fingerprint());
  EXPECT_EQ(set->size(), 160'000);
  EXPECT_EQ(open(Split::kTest, 1)->size(), 20'000);
  EXPECT_EQ(set->label(12), set->get(12).label);
}

TEST(Pathfinder, PixelsAreIds) {
  const auto shifted = open_sequences("pathfinder-32/6", Split::kTest);
  const auto raw = open_sequences("pathfinder-32/6", Split::kTest, {.pixel_ids = PixelIds::kRaw});
  EXPECT_EQ(shifted->num_ids(), 257);
  EXPECT_EQ(raw->num_ids(), 256);
  EXPECT_EQ(shifted->form().side, 32);
  EXPECT_EQ(shifted->form().max_length, 1024);
  const SequenceExample a = shifted->get(4), b = raw->get(4);
  ASSERT_EQ(a.ids.size(), 1024U);
  for (size_t i = 0; i < a.ids.size(); ++i) ASSERT_EQ(a.ids[i], b.ids[i] + 1);
  EXPECT_EQ(*std::min_element(a.ids.begin(), a.ids.end()), 1);
  EXPECT_EQ(*std::max_element(a.ids.begin(), a.ids.end()), 256);
  EXPECT_EQ(a.facts.count("marker_2_x"), 1U);
  EXPECT_EQ(open_sequences("pathfinder-128", Split::kTest)->get(0).ids.size(), 16'384U);
}

TEST(Pathfinder, LongerSnakesAreHarderToFollow) {
  // Not the label but the lengths tell the difficulties apart: bright pixels grow with them.
  const auto mean = [](const char* name) {
    const auto set = open_sequences(name, Split::kTrain, {.pixel_ids = PixelIds::kRaw});
    double sum = 0;
    for (int64_t i = 0; i < 100; ++i) {
      for (const int32_t id : set->get(i).ids) sum += id;
    }
    return sum;
  };
  EXPECT_GT(mean("pathfinder-32"), 1.1 * mean("pathfinder-32/6"));
}

/// The released form: one table of metadata, pictures of one size.
class PathfinderFolder : public testing::Test {
 protected:
  PathfinderFolder() {
    fs::create_directories(folder.path() / "imgs" / "0");
    fs::create_directories(folder.path() / "metadata");
    for (int i = 0; i < 20; ++i) {
      Image picture(32, 32, static_cast<uint8_t>(i));
      write_picture(i, picture);
      lines.push_back("imgs/0 sample_" + std::to_string(i) + ".png " + std::to_string(i) + " " +
                      std::to_string(i % 2) + " 1.0 14 4 2 0.5 1 1");
    }
  }
  void write_picture(int number, const Image& picture) const {
    const auto bytes = encode_png(picture);
    folder.write("imgs/0/sample_" + std::to_string(number) + ".png",
                 {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  }
  std::unique_ptr<SequenceSet> open(Split split) const {
    std::string text;
    for (const std::string& line : lines) text += line + "\n";
    folder.write("metadata/0.npy", text);
    return open_sequences(folder.path().string(), split, {.pixel_ids = PixelIds::kRaw});
  }
  std::string message(size_t line, const std::string& text) {
    const std::string before = std::exchange(lines[line], text);
    std::string said = error_message<DataError>([&] { open(Split::kTrain); });
    lines[line] = before;
    const std::string where = (folder.path() / "metadata/0.npy").string() + ":";
    if (said.starts_with(where)) said = said.substr(where.size());
    return said;
  }

  test::TemporaryFolder folder;
  std::vector<std::string> lines;
};

TEST_F(PathfinderFolder, IsReadAndSplit) {
  std::vector<int> seen(20);
  for (const Split split : kSplits) {
    const auto set = open(split);
    EXPECT_EQ(set->size(), split == Split::kTrain ? 16 : 2);
    for (int64_t i = 0; i < set->size(); ++i) {
      const SequenceExample example = set->get(i);
      ++seen[static_cast<size_t>(example.ids[0])];
      EXPECT_EQ(example.label, example.ids[0] % 2);
      EXPECT_EQ(example.facts.at("contour_length"), 14);
    }
  }
  EXPECT_EQ(seen, std::vector<int>(20, 1));
}

TEST_F(PathfinderFolder, EmptyPicturesAreLeftOut) {
  folder.write("imgs/0/sample_3.png", "");
  EXPECT_EQ(open(Split::kTrain)->size(), 17);  // of 19, one each for valid and test
}

TEST_F(PathfinderFolder, D4BadLinesAreNamed) {
  EXPECT_EQ(message(2, "imgs/0 sample_2.png 2 1 1.0 14"),
            "3: must have 11 columns with blanks between, has 6");
  EXPECT_EQ(message(0, lines[0] + " 1"), "1: must have 11 columns with blanks between, has more");
  EXPECT_EQ(message(4, "imgs/0 sample_4.png 4 2 1.0 14 4 2 0.5 1 1"),
            "5: the label must be 0 or 1, is 2");
  EXPECT_EQ(message(4, "imgs/0 sample_4.png 4 x 1.0 14 4 2 0.5 1 1"),
            "5: the label must be a whole number, is \"x\"");
  EXPECT_EQ(message(4, "imgs/0 ../../x.png 4 1 1.0 14 4 2 0.5 1 1"),
            "5: must name a picture below its folder, names imgs/0/../../x.png");
  EXPECT_EQ(message(4, "/imgs sample_4.png 4 1 1.0 14 4 2 0.5 1 1"),
            "5: must name a picture below its folder, names /imgs/sample_4.png");
  EXPECT_EQ(message(4, "imgs/0 other.png 4 1 1.0 14 4 2 0.5 1 1"),
            "5: imgs/0/other.png must be there, is not");
}

TEST_F(PathfinderFolder, PicturesOfAnotherSizeAreNamed) {
  write_picture(7, Image(32, 30));
  EXPECT_EQ(
      error_message<DataError>([&] { open(Split::kTest); }),
      (folder.path() / "imgs/0/sample_7.png").string() + ": must be 32 x 32 pixels, is 32 x 30");
}

}  // namespace
}  // namespace elliptical::data
