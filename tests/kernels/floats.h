// SPDX-License-Identifier: MIT
//
// An array for kernels on raw pointers: it begins where no vector register would call it aligned,
// and poison (NaN) lies on both sides. A kernel that reads there gives itself away, one that writes
// is caught by `guards_untouched`. Under AddressSanitizer nothing lies behind the array, so that
// reading there is an error by itself.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tests/kernels/bounded.h"
#include "tests/kernels/random.h"
#include "tests/kernels/sanitized.h"

namespace elliptical::kernels::test {

class Floats {
 public:
  /// NaN everywhere, so that what a kernel does not write is seen.
  explicit Floats(int64_t size = 0);
  Floats(int64_t size, float value);
  Floats(const std::vector<float>& values);  // NOLINT(google-explicit-constructor)
  static Floats normal(int64_t size, Random& random, double spread = 1.0);

  int64_t size() const { return size_; }
  float* data() { return storage_.data() + kFront; }
  const float* data() const { return storage_.data() + kFront; }
  float& operator[](int64_t i) { return data()[i]; }
  float operator[](int64_t i) const { return data()[i]; }
  float* begin() { return data(); }
  float* end() { return data() + size_; }
  const float* begin() const { return data(); }
  const float* end() const { return data() + size_; }

  /// The same numbers as exact ones, or in double.
  template <class T>
  std::vector<T> as() const {
    return std::vector<T>(begin(), end());
  }

  bool guards_untouched() const;

 private:
  static constexpr int64_t kFront = 5, kBehind = kSanitized ? 0 : 40;

  int64_t size_;
  std::vector<float> storage_;
};

/// Fails the running test unless each element lies within the bound of its exact value, or is the
/// same infinity, or NaN where that is NaN, and nothing beside the array was written to.
void expect_within(const Floats& actual,
                   const std::vector<Bounded>& exact,
                   const std::string& what);

/// The same with one bound for all.
void expect_near(const Floats& actual,
                 const std::vector<double>& exact,
                 double bound,
                 const std::string& what);

/// Fails the running test unless both hold the same bits (all NaNs count as equal).
void expect_same_bits(const Floats& actual, const Floats& expected, const std::string& what);

}  // namespace elliptical::kernels::test
