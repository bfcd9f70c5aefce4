// SPDX-License-Identifier: MIT
#include "elliptical/data/image/balanced.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

namespace elliptical::data {
namespace {

/// Class after class, as folders have them.
std::vector<int64_t> in_folders(const std::vector<int64_t>& sizes) {
  std::vector<int64_t> labels;
  for (size_t k = 0; k < sizes.size(); ++k) {
    labels.insert(labels.end(), static_cast<size_t>(sizes[k]), static_cast<int64_t>(k));
  }
  return labels;
}

std::vector<int64_t> counts_of(const std::vector<int64_t>& labels, int64_t num_classes) {
  std::vector<int64_t> counts(static_cast<size_t>(num_classes));
  for (const int64_t label : labels) ++counts[static_cast<size_t>(label)];
  return counts;
}

RC_GTEST_PROP(BalancedOrder, EveryBeginningHasAllClassesAlike, ()) {
  const auto sizes = *rc::gen::nonEmpty(
      rc::gen::container<std::vector<int64_t>>(rc::gen::inRange<int64_t>(0, 12)));
  std::vector<int64_t> labels = in_folders(sizes);
  if (*rc::gen::arbitrary<bool>()) std::reverse(labels.begin(), labels.end());
  const auto num_classes = static_cast<int64_t>(sizes.size());
  const auto size = static_cast<int64_t>(labels.size());
  const std::vector<int64_t> all = balanced_order(labels, num_classes, size);
  RC_ASSERT(std::set<int64_t>(all.begin(), all.end()).size() == labels.size());
  std::vector<int64_t> counts(sizes.size());
  for (const int64_t number : all) {
    ++counts[static_cast<size_t>(labels[static_cast<size_t>(number)])];
    const int64_t most = *std::max_element(counts.begin(), counts.end());
    for (size_t k = 0; k < counts.size(); ++k) {
      RC_ASSERT(counts[k] >= std::min(most - 1, sizes[k]));
    }
  }
  const auto count = *rc::gen::inRange<int64_t>(0, size + 1);
  const std::vector<int64_t> fewer = balanced_order(labels, num_classes, count);
  RC_ASSERT(fewer == std::vector<int64_t>(all.begin(), all.begin() + count));
  RC_ASSERT(balanced_order(labels, num_classes, size + 7) == all);
}

TEST(BalancedOrder, IsRandomAndForEver) {
  const std::vector<int64_t> labels = in_folders({100, 100, 100});
  const std::vector<int64_t> order = balanced_order(labels, 3, 300);
  // Not the first of each class, and classes do not come in their order.
  double sum = 0;
  for (size_t i = 0; i < 30; ++i) sum += static_cast<double>(order[i] % 100) / 30;
  EXPECT_GT(sum, 30);
  std::set<std::vector<int64_t>> rounds;
  for (size_t i = 0; i < order.size(); i += 3) {
    rounds.insert({order[i] / 100, order[i + 1] / 100, order[i + 2] / 100});
  }
  EXPECT_EQ(rounds.size(), 6) << "all orders of three classes";
  // What was measured on a part once is compared with later measurements.
  EXPECT_EQ(balanced_order(labels, 3, 6), (std::vector<int64_t>{279, 56, 105, 134, 248, 27}));
}

RC_GTEST_PROP(BalancedParts, DifferByAtMostOneInAllAndInEachClass, ()) {
  const auto sizes = *rc::gen::nonEmpty(
      rc::gen::container<std::vector<int64_t>>(rc::gen::inRange<int64_t>(0, 12)));
  const auto num_parts = *rc::gen::inRange<int64_t>(1, 9);
  const std::vector<int64_t> labels = in_folders(sizes);
  const std::vector<int64_t> parts = balanced_parts(labels, num_parts);
  RC_ASSERT(parts.size() == labels.size());
  const auto is_even = [&](const std::vector<int64_t>& counts) {
    const auto [low, high] = std::minmax_element(counts.begin(), counts.end());
    return *high - *low <= 1;
  };
  RC_ASSERT(is_even(counts_of(parts, num_parts)));
  for (size_t k = 0; k < sizes.size(); ++k) {
    std::vector<int64_t> of_class;
    for (size_t i = 0; i < labels.size(); ++i) {
      if (labels[i] == static_cast<int64_t>(k)) of_class.push_back(parts[i]);
    }
    RC_ASSERT(is_even(counts_of(of_class, num_parts)));
  }
}

TEST(BalancedParts, MoreThanPicturesAreOneEach) {
  EXPECT_EQ(balanced_parts({0, 1, 0, 1}, 50), (std::vector<int64_t>{0, 2, 1, 3}));
}

}  // namespace
}  // namespace elliptical::data
