// SPDX-License-Identifier: MIT
#include "elliptical/data/image/corrupted_files.h"

#include <gtest/gtest.h>

#include "elliptical/base/errors.h"
#include "elliptical/data/image/codec.h"
#include "tests/support/error_message.h"
#include "tests/support/temporary_folder.h"

namespace elliptical::data {
namespace {

using test::error_message;

class DamagedFolder : public ::testing::Test {
 protected:
  /// Two pictures of a grey in each of two classes; the second class may have more.
  void add(const std::string& damage, uint8_t grey, int num_more = 0) {
    for (const char* name : {"a", "b"}) {
      std::filesystem::create_directories(folder_.path() / damage / name);
      for (int i = 0; i < 2 + (*name == 'b' ? num_more : 0); ++i) {
        Image image(4, 4);
        std::fill(image.pixels.begin(), image.pixels.end(), grey);
        const std::vector<uint8_t> bytes = encode_png(image);
        folder_.write(damage + "/" + name + "/" + std::to_string(i) + ".png",
                      {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
      }
    }
  }
  std::unique_ptr<CorruptedFiles> find(Split split = Split::kTest) const {
    return CorruptedFiles::find(root_, split, 0);
  }

  const test::TemporaryFolder folder_;
  const std::string root_ = folder_.path().string();
};

TEST_F(DamagedFolder, IsFoundByItsFolders) {
  EXPECT_EQ(find(), nullptr);
  add("train", 1);
  add("fogg/3", 1);
  add("fog/6", 1);
  EXPECT_EQ(find(), nullptr) << "no such damage, no such level";
  EXPECT_EQ(CorruptedFiles::find("cifar-10", Split::kTest, 0), nullptr);
  add("fog/3", 30);
  add("snow/1", 40);
  const auto files = find();
  ASSERT_NE(files, nullptr);
  EXPECT_TRUE(files->has(find_corruption("fog"), 3));
  EXPECT_FALSE(files->has(find_corruption("fog"), 1));
  const auto set = files->open(find_corruption("fog"), 3);
  EXPECT_EQ(set->size(), 4);
  EXPECT_EQ(set->get(0).pixels[0], 30);
  EXPECT_EQ(set->name(), root_ + "/fog/3");
  EXPECT_TRUE(set->is_cropped());
  EXPECT_EQ(files->open(find_corruption("snow"), 1)->get(0).pixels[0], 40);
  EXPECT_EQ(files->open(find_corruption("fog"), 3), set) << "it stays open";
}

TEST_F(DamagedFolder, HasTheSamePicturesInEachFolder) {
  add("fog/3", 30);
  add("fog/4", 30, 1);
  const auto files = find();
  files->open(find_corruption("fog"), 3);
  EXPECT_EQ(error_message<DataError>([&] { files->open(find_corruption("fog"), 4); }),
            root_ + "/fog/4: must have as many pictures of each class as " + root_ +
                "/fog/3, which has 4 in all, has 5");
}

TEST_F(DamagedFolder, IsForTestsOnly) {
  add("fog/3", 30);
  EXPECT_EQ(error_message<DataError>([&] { find(Split::kValid); }),
            root_ +
                ": must be read as the split test, since it is a test set, got valid (--split "
                "test)");
}

}  // namespace
}  // namespace elliptical::data
