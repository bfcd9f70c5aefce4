// SPDX-License-Identifier: MIT
#include "elliptical/data/corrupt/zoom_impl.h"

#include <cmath>

namespace elliptical::data {
namespace {

/// Where an output takes its value from: (1 - weight) [low] + weight [high].
struct Tap {
  int64_t low = 0, high = 0;
  double weight = 0;
};

std::vector<Tap> zoom_taps(int64_t size, double factor) {
  const auto part = static_cast<int64_t>(std::ceil(static_cast<double>(size) / factor));
  const auto enlarged = static_cast<int64_t>(std::nearbyint(static_cast<double>(part) * factor));
  const int64_t first_in = (size - part) / 2, first_out = (enlarged - size) / 2;
  std::vector<Tap> taps(size);
  for (int64_t i = 0; i < size; ++i) {
    const double position = enlarged > 1 ? static_cast<double>((first_out + i) * (part - 1)) /
                                               static_cast<double>(enlarged - 1)
                                         : 0.0;
    const double floor = std::floor(position);
    const auto low = static_cast<int64_t>(floor);
    taps[i] = {first_in + low, first_in + std::min(low + 1, part - 1), position - floor};
  }
  return taps;
}

}  // namespace

Field zoom_centre(const Field& field, double factor) {
  const std::vector<Tap> columns = zoom_taps(field.width, factor);
  const std::vector<Tap> rows = zoom_taps(field.height, factor);
  Field result(field.width, field.height, field.channels);
  Field between(field.width, 1, field.channels);
  for (int64_t y = 0; y < field.height; ++y) {
    const double* const low = field.at(rows[y].low, 0);
    const double* const high = field.at(rows[y].high, 0);
    const double weight = rows[y].weight;
    for (int64_t i = 0; i < field.row(); ++i) {
      between.values[i] = low[i] + weight * (high[i] - low[i]);
    }
    for (int64_t x = 0; x < field.width; ++x) {
      const double* const left = between.at(0, columns[x].low);
      const double* const right = between.at(0, columns[x].high);
      double* const to = result.at(y, x);
      for (int64_t c = 0; c < field.channels; ++c) {
        to[c] = left[c] + columns[x].weight * (right[c] - left[c]);
      }
    }
  }
  return result;
}

}  // namespace elliptical::data
