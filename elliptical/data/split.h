// SPDX-License-Identifier: MIT
//
// The three parts of a data set.
#pragma once

#include <array>
#include <string>

namespace elliptical::data {

enum class Split { kTrain, kValid, kTest };
std::string to_string(Split split);
/// Throws UsageError for anything but train, valid, test.
Split split_from_string(const std::string& name);
inline constexpr std::array kSplits = {Split::kTrain, Split::kValid, Split::kTest};

}  // namespace elliptical::data
