// SPDX-License-Identifier: MIT
#include "elliptical/data/corrupt/gaussian_filter_impl.h"

#include <cmath>

namespace elliptical::data {
namespace {

std::vector<double> gaussian_kernel(double sigma, int64_t radius) {
  std::vector<double> kernel(2 * radius + 1);
  double sum = 0;
  for (int64_t i = -radius; i <= radius; ++i) {
    const auto x = static_cast<double>(i);
    sum += kernel[i + radius] = std::exp(-0.5 * x * x / (sigma * sigma));
  }
  for (double& weight : kernel) weight /= sum;
  return kernel;
}

/// The weights of one output: those of input rows first, first + 1, ...
struct Weights {
  int64_t first = 0;
  std::vector<double> values;
};

/// The kernel around `centre`, with what it has outside [0, size) added to where the border takes
/// it from. A kernel wider than the picture thus costs no more than the picture.
Weights fold(const std::vector<double>& kernel, int64_t centre, int64_t size, Border border) {
  const auto radius = static_cast<int64_t>(kernel.size() / 2);
  Weights weights{.first = std::max<int64_t>(0, centre - radius)};
  // A mirrored end may reach further in than the other end does, so folded rows are whole.
  const bool is_inside = centre >= radius && centre + radius < size;
  if (!is_inside && border == Border::kMirror) weights.first = 0;
  const int64_t last =
      is_inside || border == Border::kNearest ? std::min(size - 1, centre + radius) : size - 1;
  weights.values.resize(last - weights.first + 1);
  for (int64_t i = -radius; i <= radius; ++i) {
    const int64_t from = border == Border::kNearest ? std::clamp<int64_t>(centre + i, 0, size - 1)
                                                    : mirror_index(centre + i, size);
    weights.values[from - weights.first] += kernel[i + radius];
  }
  return weights;
}

/// Every column on its own.
Field filter_columns(const Field& field, const std::vector<double>& kernel, Border border) {
  Field result(field.width, field.height, field.channels);
  const int64_t count = field.row();
  for (int64_t y = 0; y < field.height; ++y) {
    const Weights weights = fold(kernel, y, field.height, border);
    double* const to = result.at(y, 0);
    for (size_t i = 0; i < weights.values.size(); ++i) {
      const double weight = weights.values[i];
      const double* const from = field.at(weights.first + static_cast<int64_t>(i), 0);
      for (int64_t x = 0; x < count; ++x) to[x] += weight * from[x];
    }
  }
  return result;
}

Field transposed(const Field& field) {
  Field result(field.height, field.width, field.channels);
  for (int64_t y = 0; y < field.height; ++y) {
    for (int64_t x = 0; x < field.width; ++x) {
      std::copy_n(field.at(y, x), field.channels, result.at(x, y));
    }
  }
  return result;
}

}  // namespace

void gaussian_filter(Field& field, double sigma, Border border, double cut_off) {
  const auto radius = static_cast<int64_t>(cut_off * sigma + 0.5);
  if (radius == 0 || field.values.empty()) return;
  const std::vector<double> kernel = gaussian_kernel(sigma, radius);
  field = filter_columns(field, kernel, border);
  field = transposed(filter_columns(transposed(field), kernel, border));
}

}  // namespace elliptical::data
