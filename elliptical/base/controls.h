// SPDX-License-Identifier: MIT
//
// The controls of a comparison: models that share one property with elliptical attention and not
// the others, so that a gain can be put down to something. Runs carry these names, and tables
// recognise them by their names.
#pragma once

#include <array>
#include <string_view>

namespace elliptical {

/// A constant metric, the measured mean of the paired elliptical run: its temperature alone.
inline constexpr std::string_view kMatchedConstant = "matched constant";
/// One learned number for each head, started at the same value.
inline constexpr std::string_view kLearnedTemperature = "learned temperature";
/// Each row of the metric replaced by its mean: what depends on the text, without direction.
inline constexpr std::string_view kIsotropic = "isotropic";
/// Numbers drawn once: direction without meaning.
inline constexpr std::string_view kRandomFixed = "random fixed";
/// The metric divided by its mean: direction without a change of temperature.
inline constexpr std::string_view kMeanScaling = "mean scaling";
/// The matched constant, changed by too little to matter: what differs from it is noise.
inline constexpr std::string_view kNullTwin = "null twin";

/// In the order of tables.
inline constexpr std::array kControls = {kMatchedConstant, kLearnedTemperature, kIsotropic,
                                         kRandomFixed,     kMeanScaling,        kNullTwin};

}  // namespace elliptical
