// SPDX-License-Identifier: MIT
//
// Where labelled pictures come from, and what is said when something is wrong with them.
#include "elliptical/data/image/image_set.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <numeric>
#include <thread>

#include "elliptical/base/errors.h"
#include "elliptical/data/catalog.h"
#include "elliptical/data/image/cifar.h"
#include "elliptical/data/image/codec.h"
#include "elliptical/data/image/image_folder.h"
#include "elliptical/data/image/imagenet.h"
#include "elliptical/data/image/imagenet_columns.h"
#include "elliptical/data/image/packed.h"
#include "tests/support/error_message.h"
#include "tests/support/temporary_folder.h"

namespace elliptical::data {
namespace {

using test::error_message;
using test::TemporaryFolder;
namespace fs = std::filesystem;

std::string to_text(const std::vector<uint8_t>& bytes) { return {bytes.begin(), bytes.end()}; }

/// Records whose label is their number modulo the classes, and all whose pixels are the number
/// modulo 251, plus 1 for green and 2 for blue.
std::string cifar_records(const CifarFormat& format, int64_t first, int64_t count) {
  std::string bytes;
  for (int64_t i = first; i < first + count; ++i) {
    bytes += std::string(format.label_bytes - 1, '\x63');
    bytes += static_cast<char>(i % format.num_classes);
    for (int64_t channel = 0; channel < 3; ++channel) {
      bytes += std::string(1024, static_cast<char>(i % 251 + channel));
    }
  }
  return bytes;
}

std::string class_lines(int64_t count) {
  std::string text;
  for (int64_t i = 0; i < count; ++i) text += "class " + std::to_string(i) + "\n";
  return text;
}

TEST(Cifar, SplitsTenAndHundred) {
  for (const CifarFormat* format : {&cifar_10(), &cifar_100()}) {
    const TemporaryFolder folder;
    folder.write(format->class_file, class_lines(format->num_classes) + "\n");
    int64_t first = 0;
    for (const std::string& file : format->train_files) {
      folder.write(file, cifar_records(*format, first, 5010));
      first += 5010;
    }
    folder.write(format->test_file, cifar_records(*format, 7, 30));
    const auto train = open_cifar(*format, folder.path(), Split::kTrain);
    const auto valid = open_cifar(*format, folder.path(), Split::kValid);
    const auto test = open_cifar(*format, folder.path(), Split::kTest);
    EXPECT_EQ(train->size(), first - 5000);
    EXPECT_EQ(valid->size(), 5000);
    EXPECT_EQ(test->size(), 30);
    EXPECT_EQ(train->num_classes(), format->num_classes);
    EXPECT_EQ(train->class_names()[9], "class 9");
    EXPECT_EQ(train->label(13), 13 % format->num_classes);
    // The first of valid follows the last of train.
    EXPECT_EQ(valid->label(0), (first - 5000) % format->num_classes);
    EXPECT_EQ(test->label(0), 7);
    const Image image = valid->get(3);
    ASSERT_EQ(image.width * image.height, 1024);
    for (int channel = 0; channel < 3; ++channel) {
      EXPECT_EQ(image.at(31, 5)[channel], (first - 4997) % 251 + channel);
    }
    EXPECT_EQ(train->fingerprint().size(), format->train_files.size());
    EXPECT_NE(valid->fingerprint(), test->fingerprint());
    EXPECT_THROW(test->get(30), std::out_of_range);
  }
}

TEST(Cifar, S4DamagedFilesAreNamedWithTheirOffset) {
  std::string bytes = cifar_records(cifar_10(), 0, 3);
  EXPECT_EQ(error_message<DataError>(
                [&] { check_cifar(std::string_view(bytes).substr(1), "a.bin", cifar_10()); }),
            "a.bin: must be records of 3073 bytes, has 9218 bytes");
  EXPECT_THROW(check_cifar("", "a.bin", cifar_10()), DataError);
  bytes[2 * 3073] = 10;
  EXPECT_EQ(error_message<DataError>([&] { check_cifar(bytes, "a.bin", cifar_10()); }),
            "a.bin: labels must be 0 to 9, got 10 (offset 6146)");
  const TemporaryFolder folder;
  EXPECT_NE(error_message<DataError>([&] {
              open_cifar(cifar_10(), folder.path(), Split::kTest);
            }).find("batches.meta.txt"),
            std::string::npos);
  folder.write("batches.meta.txt", class_lines(9));
  EXPECT_EQ(error_message<DataError>([&] { open_cifar(cifar_10(), folder.path(), Split::kTest); }),
            folder.path().string() + "/batches.meta.txt: must have 10 names, has 9");
}

TEST(Cifar, D4ClassesOfOneNameAreRefused) {
  const TemporaryFolder folder;
  folder.write("batches.meta.txt", class_lines(9) + "\r\nclass 4\r\n");
  folder.write("test_batch.bin", cifar_records(cifar_10(), 0, 10));
  EXPECT_EQ(
      error_message<DataError>([&] { open_cifar(cifar_10(), folder.path(), Split::kTest); }),
      folder.path().string() + "/batches.meta.txt: must name each class once, names class 4 twice");
}

TEST(Cifar, RealFilesArePackedAndKnown) {
  const auto place = locate_data("cifar-10");
  if (!place) GTEST_SKIP() << "cifar-10 is not here (run: elliptical data get cifar-10)";
  const auto test = open_images("cifar-10", Split::kTest);
  EXPECT_EQ(test->size(), 10'000);
  EXPECT_EQ(test->class_names()[test->label(0)], "cat");
  EXPECT_EQ(test->fingerprint().at("test_batch.bin"),
            "8e2eb146ae340b09e24670f29cabc6326dba54da8789dab6768acf480273f65b");
  EXPECT_EQ(open_images("cifar-10", Split::kValid)->size(), 5'000);
}

TEST(ImageNet16, IsATestSet) {
  if (!locate_data("imagenet-16")) GTEST_SKIP() << "imagenet-16 is not here";
  const auto set = open_images("imagenet-16", Split::kTest);
  EXPECT_EQ(set->size(), 16);
  EXPECT_EQ(set->num_classes(), 1000);
  EXPECT_EQ(set->label(0), 10);
  EXPECT_EQ(set->class_names()[10], "brambling, Fringilla montifringilla");
  EXPECT_EQ(set->get(15).width, 224);
  EXPECT_NE(error_message<DataError>([] {
              open_images("imagenet-16", Split::kTrain);
            }).find(": is a test set, has no split train"),
            std::string::npos);
}

TEST(PackedIndex, NamesTheWrongPicture) {
  const auto parse = [](std::string_view text) { return parse_packed_index(text, "i.tsv", 5); };
  const auto entries = parse("file\tlabel\na.png\t4\r\nb\t0\tmore\n");
  ASSERT_EQ(entries.size(), 2u);
  EXPECT_EQ(entries[0].label, 4);
  EXPECT_EQ(entries[1].file, "b");
  EXPECT_EQ(error_message<DataError>([&] { parse("file\tlabel\na\t1\nb\t5\n"); }),
            "i.tsv, picture 2: label must be 0 to 4, got \"5\"");
  for (const char* label : {"-1", "", "x", "1x", "99999999999999999999"}) {
    EXPECT_THROW(parse(std::string("file\tlabel\na\t") + label), DataError) << label;
  }
  EXPECT_EQ(error_message<DataError>([&] { parse("file\tlabel\na 1\n"); }),
            "i.tsv, picture 1: must be file, tab, label");
  EXPECT_EQ(error_message<DataError>([&] { parse("file\tlabel\n"); }),
            "i.tsv: must name pictures, names none");
}

/// Folders with three pictures a class, in colours that tell them apart.
class Folder : public testing::Test {
 protected:
  void add(const std::string& path, std::string_view contents) {
    fs::create_directories((folder.path() / path).parent_path());
    folder.write(path, contents);
  }
  void add_picture(const std::string& path, uint8_t value) {
    add(path, to_text(encode_png(Image(4, 3, value))));
  }
  void add_split(const std::string& split) {
    uint8_t value = 10;
    for (const std::string class_name : {"bird", "ant", "cat"}) {
      for (const std::string file : {"2.png", "1.JPEG", "3.jpg"}) {
        add_picture(split + "/" + class_name + "/" + file, value++);
      }
    }
  }
  auto open(Split split, const OpenImagesOptions& options = {}) const {
    return open_images(folder.path().string(), split, options);
  }
  std::string open_error(Split split) const {
    std::string message = error_message<DataError>([&] { open(split); });
    const std::string root = folder.path().string();
    const size_t at = message.find(root);
    return at == std::string::npos ? message : message.replace(at, root.size(), "ROOT");
  }

  TemporaryFolder folder;
};

TEST_F(Folder, NumbersClassesAndPicturesByName) {
  add_split("train");
  add_split("val");
  add("train/notes.txt", "no class");
  add("train/ant/notes.txt", "no picture");
  const auto train = open(Split::kTrain);
  EXPECT_EQ(train->class_names(), (std::vector<std::string>{"ant", "bird", "cat"}));
  ASSERT_EQ(train->size(), 9);
  for (int64_t i = 0; i < 9; ++i) EXPECT_EQ(train->label(i), i / 3);
  EXPECT_EQ(train->get(0), Image(4, 3, 14));  // ant/1.JPEG: a name says nothing about the contents
  EXPECT_EQ(train->get(3), Image(4, 3, 11));
  EXPECT_TRUE(train->origin(3).ends_with("train/bird/1.JPEG"));
  EXPECT_EQ(open(Split::kTest)->size(), 9) << "without a folder test it is val";
  EXPECT_EQ(open(Split::kTest)->origin(0), open(Split::kValid)->origin(0));
  const auto before = open(Split::kValid)->fingerprint();
  add_picture("val/cat/4.png", 1);
  EXPECT_NE(open(Split::kValid)->fingerprint(), before);
}

TEST_F(Folder, D5ReplacedPicturesOfTheSameSizeChangeTheFingerprint) {
  add_split("train");
  const auto before = open(Split::kTrain)->fingerprint();
  const std::string file = "train/cat/2.png", original = folder.read(file);
  std::string other = original;
  other[other.size() / 2] ^= 1;
  add(file, other);
  const auto after = open(Split::kTrain)->fingerprint();
  EXPECT_EQ(after.at("paths and sizes"), before.at("paths and sizes"));
  EXPECT_NE(after.at("contents"), before.at("contents"));
  add(file, original);
  EXPECT_EQ(open(Split::kTrain)->fingerprint(), before) << "times do not count";
}

TEST_F(Folder, D5OfLargeFilesStartMiddleAndEndAreKnown) {
  add_split("train");
  const std::string file = "train/cat/2.png";
  const std::string large(100'000, 'x');
  add(file, large);
  const auto before = open(Split::kTrain)->fingerprint();
  for (const size_t place : {size_t{0}, size_t{50'000}, large.size() - 1}) {
    std::string other = large;
    other[place] = 'y';
    add(file, other);
    EXPECT_NE(open(Split::kTrain)->fingerprint(), before) << place;
  }
}

TEST_F(Folder, D5TheFingerprintOfManyFilesDependsOnEachOfThem) {
  add_split("train");
  for (int i = 0; i < 1200; ++i) add("train/ant/" + std::to_string(i) + ".png", "a");
  const auto before = open(Split::kTrain)->fingerprint();
  EXPECT_EQ(open(Split::kTrain)->fingerprint(), before) << "whatever threads do";
  for (const char* name : {"0", "600", "1199"}) {
    add("train/ant/" + std::string(name) + ".png", "b");
    EXPECT_NE(open(Split::kTrain)->fingerprint(), before) << name;
    add("train/ant/" + std::string(name) + ".png", "a");
  }
}

TEST_F(Folder, ClassFoldersAloneAreATestSet) {
  add_split(".");
  EXPECT_EQ(open(Split::kTest)->size(), 9);
  EXPECT_EQ(open_error(Split::kTrain),
            "ROOT: must have folders train and val to have a split train, is a test set");
}

TEST_F(Folder, D4WhatIsMissingIsNamed) {
  EXPECT_EQ(open_error(Split::kTest),
            "ROOT: must have a folder for each of at least 2 classes, has 0");
  EXPECT_EQ(error_message<DataError>([] { open_images("no/such", Split::kTest); }),
            "no/such: must be a folder of pictures, is not there");
  add_split("train");
  EXPECT_EQ(open_error(Split::kValid),
            "ROOT: must have a folder for the split valid (val, valid), has none");
  add_split("val");
  fs::create_directories(folder.path() / "val" / "dog");
  EXPECT_EQ(open_error(Split::kValid), "ROOT/val: must have the classes of " +
                                           folder.path().string() + "/train, has also dog");
  fs::create_directories(folder.path() / "train" / "dog");
  EXPECT_EQ(open_error(Split::kTrain),
            "ROOT/train/dog: must have pictures (.jpg, .jpeg, .png), has none");
  fs::remove(folder.path() / "train" / "dog");
  fs::remove(folder.path() / "val" / "dog");
  fs::remove_all(folder.path() / "val" / "cat");
  EXPECT_EQ(open_error(Split::kValid),
            "ROOT/val: must have the classes of " + folder.path().string() + "/train, lacks cat");
}

TEST_F(Folder, D4ASplitThatIsThereTwiceIsRefused) {
  for (const char* split : {"train", "val", "valid"}) add_split(split);
  for (const Split split : {Split::kValid, Split::kTest}) {
    EXPECT_EQ(open_error(split),
              "ROOT: must hold each split once, has val and valid (take one of them away)");
  }
  EXPECT_EQ(open(Split::kTrain)->size(), 9);
}

TEST_F(Folder, D1BadPicturesFailWithTheirPathOrAreReplaced) {
  add_split("train");
  add("train/bird/1.JPEG", "this is text");
  const std::string path = (folder.path() / "train/bird/1.JPEG").string();
  EXPECT_EQ(error_message<DataError>([&] { open(Split::kTrain)->get(3); }),
            path + ": must be a JPEG or PNG picture, begins with \"this is text\"");
  const auto train = open(Split::kTrain, {.max_bad = 1});
  EXPECT_EQ(train->get(3), train->get(4)) << "the next one of the class";
  train->get(3);
  EXPECT_EQ(train->num_bad(), 1) << "each is counted once";
  add("train/cat/3.jpg", "");
  EXPECT_EQ(error_message<DataError>([&] { train->get(8); }),
            (folder.path() / "train/cat/3.jpg").string() +
                ": must be a JPEG or PNG picture, is empty (more than the 1 that may be)");
  const auto more = open(Split::kTrain, {.max_bad = 9});
  EXPECT_EQ(more->get(8), more->get(6)) << "from the last on to the first of the class";
  for (const char* file : {"1.JPEG", "2.png"}) add(std::string("train/cat/") + file, "x");
  EXPECT_EQ(error_message<DataError>([&] { more->get(7); }).substr(folder.path().string().size()),
            ": class cat has no readable picture");
}

TEST_F(Folder, ThreadsReadTheSame) {
  add_split("train");
  add("train/ant/1.JPEG", "x");
  const auto set = open(Split::kTrain, {.max_bad = 1});
  std::vector<Image> expected;
  for (int64_t i = 0; i < set->size(); ++i) expected.push_back(set->get(i));
  std::vector<std::vector<Image>> read(4);
  {
    std::vector<std::jthread> threads;
    for (auto& images : read) {
      threads.emplace_back([&] {
        for (int64_t i = 0; i < set->size(); ++i) images.push_back(set->get(i));
      });
    }
  }
  for (const auto& images : read) EXPECT_EQ(images, expected);
}

TEST_F(Folder, ImageNetMustHaveItsClasses) {
  add_split(".");
  const std::string root = folder.path().string();
  EXPECT_EQ(
      error_message<DataError>([&] { open_imagenet_at(folder.path(), "imagenet", Split::kTest); }),
      root +
          ": must have the 1000 WordNet ids of ImageNet as folders, has 3 folders that "
          "are not these");
  EXPECT_EQ(error_message<DataError>(
                [&] { open_imagenet_at(folder.path(), "imagenet-r", Split::kTest); }),
            root + ": must have 200 classes, has 3");
  EXPECT_EQ(error_message<DataError>(
                [&] { open_imagenet_at(folder.path(), "imagenet-c/fog/6", Split::kTest); }),
            root + "/fog/6: must be a folder of pictures, is not there");
  EXPECT_EQ(error_message<ConfigError>(
                [&] { open_imagenet_at(folder.path(), "imagenet-c", Split::kTest); }),
            "data: imagenet-c must be asked for as imagenet-c/NOISE/LEVEL, for instance "
            "imagenet-c/fog/3 (all of it: elliptical eval RUN --split test --set data=imagenet-c)");
}

TEST_F(Folder, ImageNetAKnowsItsColumns) {
  for (int i = 0; i < 200; ++i) add_picture("n" + std::to_string(1000 + i) + "/1.jpg", 1);
  const auto set = open_imagenet_at(folder.path(), "imagenet-a", Split::kTest);
  ASSERT_EQ(set->class_columns().size(), 200u);
  EXPECT_EQ(set->class_columns()[0], 6);
  EXPECT_EQ(set->class_columns()[199], 988);
}

TEST(ImageNetColumns, IA1SumsAndOrder) {
  for (const auto& [columns, sum] :
       {std::pair{kImageNetAColumns, 102178}, std::pair{kImageNetRColumns, 86135}}) {
    EXPECT_EQ(std::accumulate(columns.begin(), columns.end(), 0), sum);
    EXPECT_TRUE(std::is_sorted(columns.begin(), columns.end()));
    EXPECT_EQ(std::adjacent_find(columns.begin(), columns.end()), columns.end());
  }
  std::vector<int> both;
  std::set_intersection(kImageNetAColumns.begin(), kImageNetAColumns.end(),
                        kImageNetRColumns.begin(), kImageNetRColumns.end(),
                        std::back_inserter(both));
  EXPECT_EQ(both.size(), 86u);
}

TEST(OpenImages, UnknownNamesGetAdvice) {
  EXPECT_EQ(error_message<ConfigError>([] { open_images("cifar10", Split::kTrain); }),
            "data: unknown \"cifar10\", did you mean \"cifar-10\"?");
  if (!locate_data("imagenet")) {
    const std::string message =
        error_message<SetupError>([] { open_images("imagenet", Split::kTrain); });
    EXPECT_TRUE(
        message.ends_with("data/imagenet, is not (run: elliptical data import imagenet "
                          "--from FOLDER; small-pictures needs no files)"))
        << message;
  }
}

}  // namespace
}  // namespace elliptical::data
