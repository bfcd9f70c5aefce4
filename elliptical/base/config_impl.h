// SPDX-License-Identifier: MIT
//
// How fields and their values read, shared by reading and printing of configurations.
#pragma once

#include <string>
#include <type_traits>

#include "elliptical/base/options.h"

namespace elliptical {

template <class T>
std::string type_text() {
  if constexpr (std::is_same_v<T, bool>) return "true or false";
  if constexpr (std::is_same_v<T, int64_t>) return "a whole number";
  if constexpr (std::is_same_v<T, double>) return "a number";
  if constexpr (std::is_same_v<T, std::string>) return "text";
}

/// " >= 0", " in [0, 1)", "" without limits.
std::string limits_text(const Limits& limits);

/// "a whole number >= 0", "a list, each a number", "one of a, b".
std::string field_type(const Field& field);

/// The shortest text that reads back as the same number, with a dot or an exponent.
std::string number_text(double number);

/// The value as TOML, or "" when an optional one is absent.
std::string value_text(const Field& field);

}  // namespace elliptical
