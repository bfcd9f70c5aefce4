// SPDX-License-Identifier: MIT
#include "elliptical/data/corrupt/mce.h"

#include <gtest/gtest.h>

#include "elliptical/base/errors.h"
#include "tests/support/error_message.h"

namespace elliptical::data {
namespace {

using test::error_message;

// IC-1: the averages as published beside the table.
TEST(Mce, AlexNetRowsHaveTheirPublishedAverages) {
  const double averages[] = {.886428, .894468, .922640, .819880, .826268, .785948, .798360,
                             .866816, .826572, .819324, .564592, .853204, .646056, .717840,
                             .606500, .845388, .787108, .717512, .658248};
  ASSERT_EQ(alexnet_errors().size(), corruption_table().size());
  for (size_t i = 0; i < alexnet_errors().size(); ++i) {
    EXPECT_EQ(alexnet_errors()[i].name, corruption_table()[i].name);
    EXPECT_NEAR(alexnet_errors()[i].mean(), averages[i], 1e-6) << alexnet_errors()[i].name;
  }
}

// IC-2
TEST(Mce, AlexNetItselfHasOneHundred) {
  for (const CorruptionGroup group : {CorruptionGroup::kMain, CorruptionGroup::kExtra}) {
    EXPECT_DOUBLE_EQ(mean_corruption_error(alexnet_errors(), group), 100.0);
    EXPECT_DOUBLE_EQ(relative_mean_corruption_error(alexnet_errors(), kAlexnetCleanError, group),
                     100.0);
  }
}

CorruptionErrors constant_error(const std::string& name, double error) {
  CorruptionErrors row{.name = name};
  row.errors.fill(error);
  return row;
}

// IC-3: accuracies of ResNet-50, in per cent.
TEST(Mce, ResNetHasItsPublishedRatios) {
  const auto ratio = [](const char* name, double accuracy) {
    return 100 * corruption_error(constant_error(name, 1 - accuracy / 100));
  };
  EXPECT_NEAR(ratio("brightness", 68.02), 56.64, 0.005);
  EXPECT_NEAR(ratio("contrast", 39.06), 71.42, 0.005);
  EXPECT_NEAR(ratio("gaussian_noise", 29.29), 79.77, 0.005);
  EXPECT_NEAR(ratio("fog", 45.83), 66.12, 0.005);
}

// IC-4: the mean of E / A over severities, with the average A, is the ratio of the means.
TEST(Mce, SeveritiesMayBeAveragedFirstOrLast) {
  const CorruptionErrors row{.name = "snow", .errors = {.3, .5, .45, .6, .7}};
  double mean = 0;
  for (const double error : row.errors) mean += error / 0.866816 / kNumSeverities;
  EXPECT_NEAR(corruption_error(row), mean, 1e-12);
}

TEST(Mce, TheRelativeFormTakesCleanErrorsOff) {
  EXPECT_NEAR(relative_corruption_error(constant_error("pixelate", 0.5), 0.2385),
              (0.5 - 0.2385) / (0.717840 - 0.4348), 1e-9);
}

TEST(Mce, GroupsMustBeComplete) {
  std::vector<CorruptionErrors> rows = alexnet_errors();
  rows.erase(rows.begin() + 3);
  EXPECT_EQ(error_message<UsageError>([&] { mean_corruption_error(rows, CorruptionGroup::kMain); }),
            "mCE: each main corruption must be there once, got defocus_blur 0 times");
  EXPECT_NEAR(mean_corruption_error(rows, CorruptionGroup::kExtra), 100, 1e-9);
  rows.push_back(rows.back());
  EXPECT_EQ(
      error_message<UsageError>([&] { mean_corruption_error(rows, CorruptionGroup::kExtra); }),
      "mCE: each extra corruption must be there once, got saturate 2 times");
  EXPECT_EQ(error_message<UsageError>([] { corruption_error(constant_error("snoww", 0.5)); }),
            "corruption: unknown \"snoww\", did you mean \"snow\"? (run: elliptical list "
            "corruptions)");
}

// IC-9: what a test of severities must not assume.
TEST(Mce, AlexNetIsNotMonotoneEverywhere) {
  for (const char* name : {"snow", "elastic_transform", "saturate"}) {
    const size_t index = &find_corruption(name) - corruption_table().data();
    EXPECT_LT(alexnet_errors()[index].errors[2], alexnet_errors()[index].errors[1]) << name;
  }
}

}  // namespace
}  // namespace elliptical::data
