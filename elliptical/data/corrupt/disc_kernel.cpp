// SPDX-License-Identifier: MIT
#include "elliptical/data/corrupt/disc_kernel_impl.h"

#include <cmath>

namespace elliptical::data {
namespace {

constexpr int64_t kSmallGrid = 8;

/// A Gaussian on -radius..radius in both directions, with the sum 1.
Field small_gaussian(int64_t radius, double sigma) {
  Field kernel(2 * radius + 1, 2 * radius + 1);
  double sum = 0;
  for (int64_t y = -radius; y <= radius; ++y) {
    for (int64_t x = -radius; x <= radius; ++x) {
      const auto square = static_cast<double>(x * x + y * y);
      sum += *kernel.at(y + radius, x + radius) = std::exp(-square / (2 * sigma * sigma));
    }
  }
  for (double& weight : kernel.values) weight /= sum;
  return kernel;
}

}  // namespace

Field correlate(const Field& field, const Field& kernel) {
  const int64_t radius = kernel.width / 2;
  Field result(field.width, field.height, field.channels);
  // A row with its reflected ends, so that every shift of it is contiguous.
  const int64_t padded_row = field.row() + 2 * radius * field.channels;
  Field padded(field.width + 2 * radius, field.height, field.channels);
  for (int64_t y = 0; y < field.height; ++y) {
    for (int64_t x = -radius; x < field.width + radius; ++x) {
      std::copy_n(field.at(y, reflect_index(x, field.width)), field.channels,
                  padded.at(y, x + radius));
    }
  }
  for (int64_t y = 0; y < field.height; ++y) {
    double* const to = result.at(y, 0);
    for (int64_t dy = -radius; dy <= radius; ++dy) {
      const double* const from =
          padded.values.data() + reflect_index(y + dy, field.height) * padded_row;
      for (int64_t dx = 0; dx <= 2 * radius; ++dx) {
        const double weight = *kernel.at(dy + radius, dx);
        if (weight == 0) continue;
        const double* const shifted = from + dx * field.channels;
        for (int64_t x = 0; x < field.row(); ++x) to[x] += weight * shifted[x];
      }
    }
  }
  return result;
}

Field disc_kernel(double radius, double alias_sigma) {
  const bool is_small = radius <= kSmallGrid;
  const int64_t grid = is_small ? kSmallGrid : static_cast<int64_t>(radius);
  Field kernel(2 * grid + 1, 2 * grid + 1);
  double area = 0;
  for (int64_t y = -grid; y <= grid; ++y) {
    for (int64_t x = -grid; x <= grid; ++x) {
      const bool is_inside = static_cast<double>(x * x + y * y) <= radius * radius;
      area += *kernel.at(y + grid, x + grid) = is_inside ? 1.0 : 0.0;
    }
  }
  for (double& weight : kernel.values) weight /= area;
  return correlate(kernel, small_gaussian(is_small ? 1 : 2, alias_sigma));
}

}  // namespace elliptical::data
