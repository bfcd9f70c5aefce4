// SPDX-License-Identifier: MIT
//
// The lists of labels that come with CIFAR-10 as sheets of pictures.
#include <gtest/gtest.h>

#include <fstream>

#include "elliptical/base/errors.h"
#include "elliptical/data/catalog_checks_impl.h"
#include "tests/support/error_message.h"
#include "tests/support/temporary_folder.h"

namespace elliptical::data {
namespace {

using test::error_message;

TEST(LabelList, IsAListOfDigits) {
  EXPECT_EQ(parse_label_list("[6, 9,\n0]", "f"), (std::vector<uint8_t>{6, 9, 0}));
  EXPECT_TRUE(parse_label_list("[]", "f").empty());
}

// Digits were once read one by one, so that 10 was the labels 1 and 0.
TEST(LabelList, D4LabelsThatAreNoneAreRefusedWithTheirPlace) {
  for (const char* text : {"[1, 10]", "[1, -1]", "[1, 1.5]", "[1, \"1\"]", "[1, [1]]", "[1, null]",
                           "[1, 18446744073709551616]"}) {
    EXPECT_EQ(error_message<DataError>([&] { parse_label_list(text, "f"); }),
              "f: label 1 must be a whole number from 0 to 9, is none")
        << text;
  }
  EXPECT_EQ(error_message<DataError>([] { parse_label_list("{}", "f"); }),
            "f: must be a list of labels, is none");
  EXPECT_THROW(parse_label_list("[1 2]", "f"), DataError);
  EXPECT_THROW(parse_label_list("", "f"), DataError);
}

TEST(LabelList, D4LabelsThatDoNotFillTheSheetsAreRefused) {
  const test::TemporaryFolder folder;
  std::ofstream(folder.path() / "train_lables.json") << "[1, 2, 3, 4, 5, 6]";
  std::ofstream(folder.path() / "test_lables.json") << "[1]";
  const std::string message =
      error_message<DataError>([&] { convert_cifar_10_sheets(folder.path(), folder.path()); });
  EXPECT_NE(message.find("must have as many labels for each of 5 sheets, has 6"), std::string::npos)
      << message;
}

}  // namespace
}  // namespace elliptical::data
