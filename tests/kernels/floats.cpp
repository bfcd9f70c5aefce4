// SPDX-License-Identifier: MIT
#include "tests/kernels/floats.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

namespace elliptical::kernels::test {
namespace {

// A NaN of its own: one that a kernel computes has other bits.
constexpr uint32_t kPoison = 0x7FC0BEEFu;

}  // namespace

Floats::Floats(int64_t size)
    : size_(size),
      storage_(static_cast<size_t>(kFront + size + kBehind), std::bit_cast<float>(kPoison)) {}

Floats::Floats(int64_t size, float value) : Floats(size) { std::fill_n(data(), size, value); }

Floats::Floats(const std::vector<float>& values) : Floats(static_cast<int64_t>(values.size())) {
  std::copy(values.begin(), values.end(), data());
}

Floats Floats::normal(int64_t size, Random& random, double spread) {
  Floats result(size);
  for (float& value : result) value = static_cast<float>(spread * random.normal());
  return result;
}

bool Floats::guards_untouched() const {
  const auto is_poison = [](float value) { return std::bit_cast<uint32_t>(value) == kPoison; };
  return std::all_of(storage_.begin(), storage_.begin() + kFront, is_poison) &&
         std::all_of(storage_.end() - kBehind, storage_.end(), is_poison);
}

void expect_within(const Floats& actual,
                   const std::vector<Bounded>& exact,
                   const std::string& what) {
  ASSERT_EQ(actual.size(), static_cast<int64_t>(exact.size())) << what;
  EXPECT_TRUE(actual.guards_untouched()) << what;
  for (int64_t i = 0; i < actual.size(); ++i) {
    const double wanted = exact[i].value, got = actual[i];
    if (got == wanted || (std::isnan(got) && std::isnan(wanted))) continue;
    ASSERT_LE(std::abs(got - wanted), exact[i].error())
        << what << "[" << i << "] is " << got << ", exactly " << wanted;
  }
}

void expect_near(const Floats& actual,
                 const std::vector<double>& exact,
                 double bound,
                 const std::string& what) {
  std::vector<Bounded> bounded(exact.begin(), exact.end());
  for (Bounded& value : bounded) value.propagated = bound;
  expect_within(actual, bounded, what);
}

void expect_same_bits(const Floats& actual, const Floats& expected, const std::string& what) {
  ASSERT_EQ(actual.size(), expected.size()) << what;
  for (int64_t i = 0; i < actual.size(); ++i) {
    if (std::isnan(actual[i]) && std::isnan(expected[i])) continue;
    ASSERT_EQ(std::bit_cast<uint32_t>(actual[i]), std::bit_cast<uint32_t>(expected[i]))
        << what << "[" << i << "] is " << actual[i] << ", expected " << expected[i]
        << " bit for bit";
  }
}

}  // namespace elliptical::kernels::test
