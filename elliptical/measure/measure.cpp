// SPDX-License-Identifier: MIT
#include "elliptical/measure/measure.h"

#include <cctype>
#include <cmath>

namespace elliptical::measure {

std::string Measure::title() const {
  std::string text = name;
  if (!text.empty()) text[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(text[0])));
  return text;
}

double Measure::level(double value) const { return is_ratio ? std::log(value) : value; }

double Measure::from_level(double level) const { return is_ratio ? std::exp(level) : level; }

double Measure::shown(double difference) const {
  return is_ratio ? 100 * std::expm1(difference) : difference;
}

}  // namespace elliptical::measure
