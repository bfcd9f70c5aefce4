// SPDX-License-Identifier: MIT
//
// A number in double that knows how far a float32 computation of it may be off: running error
// analysis (Higham, Accuracy and Stability of Numerical Algorithms, section 3.3). Formulas of the
// references evaluated in it give an exact value and a bound to hold a kernel to. Bounds hold for
// sums in any order: n terms cost n - 1 roundings of the sum of their absolute values.
#pragma once

#include <cmath>
#include <limits>

namespace elliptical::kernels::test {

/// Two roundings to nearest for each operation: its own, and one for an operand that the kernel
/// has rounded where the formula has not (a constant, a factor of dropout).
inline constexpr double kStep = 0x1p-23;

/// Numbers below float's smallest normal one lose digits, or are flushed to 0.
inline constexpr double kUnderflow = 0x1p-126;

struct Bounded {
  double value = 0;
  double propagated = 0;  ///< what errors of the terms make of it
  double magnitude = 0;   ///< sum of the absolute values of its terms
  double terms = 1;       ///< a sum of so many; 1: no sum

  Bounded() = default;
  /// An input: exact.
  Bounded(double exact)  // NOLINT(google-explicit-constructor)
      : value(exact), magnitude(std::abs(exact)) {}
  /// The result of an operation other than a sum.
  Bounded(double result, double error_of_operands)
      : value(result),
        propagated(error_of_operands + kStep * std::abs(result) + (result == 0 ? 0 : kUnderflow)),
        magnitude(std::abs(result)) {}

  /// |computed - value| is at most that.
  double error() const { return propagated + (terms - 1) * kStep * magnitude; }

  Bounded operator-() const {
    Bounded result = *this;
    result.value = -value;
    return result;
  }
  Bounded& operator+=(const Bounded& other) {
    value += other.value;
    propagated += other.propagated;
    magnitude += other.magnitude;
    terms += other.terms;
    return *this;
  }
  Bounded& operator-=(const Bounded& other) { return *this += -other; }

  friend Bounded operator+(Bounded a, const Bounded& b) { return a += b; }
  friend Bounded operator-(Bounded a, const Bounded& b) { return a -= b; }
  friend Bounded operator*(const Bounded& a, const Bounded& b) {
    const double error_a = a.error(), error_b = b.error();
    return {a.value * b.value,
            std::abs(a.value) * error_b + std::abs(b.value) * error_a + error_a * error_b};
  }
  friend Bounded operator/(const Bounded& a, const Bounded& b) {
    const double result = a.value / b.value, smallest = std::abs(b.value) - b.error();
    return {result, smallest > 0 ? (a.error() + std::abs(result) * b.error()) / smallest
                                 : std::numeric_limits<double>::infinity()};
  }
  friend bool operator<(const Bounded& a, const Bounded& b) { return a.value < b.value; }
};

inline Bounded sqrt(const Bounded& x) {
  const double root = std::sqrt(x.value);
  return {root, root - std::sqrt(std::fmax(0.0, x.value - x.error()))};
}

/// The kernels' 2^x has a relative error below 2.4e-7, 2.02 steps.
inline Bounded exp(const Bounded& x) {
  const double result = std::exp(x.value);
  return {result, result * (std::expm1(x.error()) + 2.02 * kStep) + kUnderflow};
}

}  // namespace elliptical::kernels::test
