// SPDX-License-Identifier: MIT
#include "elliptical/data/image/resample.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <stdexcept>
#include <string>

namespace elliptical::data {
namespace {

constexpr int kWeightBits = 22;
constexpr int64_t kMaxSide = int64_t{1} << 20;

double support_of(Filter filter) {
  switch (filter) {
    case Filter::kBox:
      return 0.5;
    case Filter::kBilinear:
      return 1;
    case Filter::kBicubic:
      return 2;
    case Filter::kLanczos:
      return 3;
  }
  throw std::invalid_argument("resample: unknown filter");
}

double sinc(double t) {
  if (t == 0) return 1;
  t *= std::numbers::pi;
  return std::sin(t) / t;
}

double weight_at(Filter filter, double t) {
  switch (filter) {
    case Filter::kBox:
      return t > -0.5 && t <= 0.5 ? 1 : 0;
    case Filter::kBilinear:
      return std::max(0.0, 1 - std::abs(t));
    case Filter::kBicubic: {  // Keys' cubic, a = -1/2
      constexpr double a = -0.5;
      t = std::abs(t);
      if (t < 1) return ((a + 2) * t - (a + 3)) * t * t + 1;
      return t < 2 ? (((t - 5) * t + 8) * t - 4) * a : 0;
    }
    case Filter::kLanczos:
      return t >= -3 && t < 3 ? sinc(t) * sinc(t / 3) : 0;
  }
  return 0;
}

/// What one output pixel takes from the input: pixels first .. first + count - 1.
struct Window {
  int64_t first, count;
  size_t weights;  ///< where its weights start
};

struct Axis {
  std::vector<Window> windows;   ///< one per output pixel
  std::vector<int32_t> weights;  ///< multiples of 2^-22
};

Axis plan_axis(int64_t input, int64_t output, Filter filter) {
  const double scale = static_cast<double>(input) / static_cast<double>(output);
  const double filter_scale = std::max(scale, 1.0);
  const double support = support_of(filter) * filter_scale;
  Axis axis;
  axis.windows.reserve(output);
  std::vector<double> weights;
  for (int64_t i = 0; i < output; ++i) {
    const double center = (static_cast<double>(i) + 0.5) * scale;
    const int64_t first = std::max<int64_t>(0, static_cast<int64_t>(center - support + 0.5));
    const int64_t last = std::min(input, static_cast<int64_t>(center + support + 0.5));
    weights.clear();
    double sum = 0;
    for (int64_t j = first; j < last; ++j) {
      // The reciprocal and this order of the sum are Pillow's: the last bit of a weight depends on
      // them.
      const double t = (static_cast<double>(j) - center + 0.5) * (1.0 / filter_scale);
      weights.push_back(weight_at(filter, t));
      sum += weights.back();
    }
    axis.windows.push_back({first, last - first, axis.weights.size()});
    for (double weight : weights) {
      if (sum != 0) weight /= sum;
      const double half = weight < 0 ? -0.5 : 0.5;
      axis.weights.push_back(static_cast<int32_t>(half + weight * (1 << kWeightBits)));
    }
  }
  return axis;
}

/// Takes 2^22 times the value, half of 2^22 already added. No overflow before: the weights'
/// absolute values sum to less than 1.7, so that the sum stays below 1.7 * 255 * 2^22 < 2^31.
uint8_t to_byte(int32_t sum) {
  return static_cast<uint8_t>(std::clamp(sum >> kWeightBits, 0, 255));
}

Image resample_rows(const Image& image, int64_t width, Filter filter) {
  const Axis axis = plan_axis(image.width, width, filter);
  Image result(width, image.height);
  for (int64_t y = 0; y < image.height; ++y) {
    uint8_t* to = result.at(y, 0);
    for (const Window& window : axis.windows) {
      const uint8_t* from = image.at(y, window.first);
      const int32_t* weights = axis.weights.data() + window.weights;
      int32_t red = 1 << (kWeightBits - 1), green = red, blue = red;
      for (int64_t j = 0; j < window.count; ++j, from += Image::kChannels) {
        red += weights[j] * from[0];
        green += weights[j] * from[1];
        blue += weights[j] * from[2];
      }
      *to++ = to_byte(red);
      *to++ = to_byte(green);
      *to++ = to_byte(blue);
    }
  }
  return result;
}

/// Adds up whole rows, so that the inner loop runs over neighbouring bytes.
Image resample_columns(const Image& image, int64_t height, Filter filter) {
  const Axis axis = plan_axis(image.height, height, filter);
  Image result(image.width, height);
  const int64_t row_bytes = image.width * Image::kChannels;
  std::vector<int32_t> sums(row_bytes);
  for (int64_t y = 0; y < height; ++y) {
    const Window& window = axis.windows[y];
    std::fill(sums.begin(), sums.end(), 1 << (kWeightBits - 1));
    for (int64_t j = 0; j < window.count; ++j) {
      const int32_t weight = axis.weights[window.weights + j];
      const uint8_t* from = image.at(window.first + j, 0);
      for (int64_t x = 0; x < row_bytes; ++x) sums[x] += weight * from[x];
    }
    uint8_t* to = result.at(y, 0);
    for (int64_t x = 0; x < row_bytes; ++x) to[x] = to_byte(sums[x]);
  }
  return result;
}

std::string size_text(int64_t width, int64_t height) {
  return std::to_string(width) + " x " + std::to_string(height);
}

}  // namespace

Image resample(const Image& image, int64_t width, int64_t height, Filter filter) {
  const bool valid = image.width > 0 && image.height > 0 && width > 0 && height > 0 &&
                     width <= kMaxSide && height <= kMaxSide;
  if (!valid) {
    throw std::invalid_argument("resample: sizes must be 1 to " + std::to_string(kMaxSide) +
                                ", got " + size_text(image.width, image.height) + " to " +
                                size_text(width, height));
  }
  if (width == image.width && height == image.height) return image;
  if (width == image.width) return resample_columns(image, height, filter);
  Image rows = resample_rows(image, width, filter);
  return height == image.height ? rows : resample_columns(rows, height, filter);
}

Image resize_shorter(const Image& image, int64_t side, Filter filter) {
  const auto [shorter, longer] = std::minmax({image.width, image.height});
  if (shorter < 1) throw std::invalid_argument("resize_shorter: the picture is empty");
  const int64_t other = side * longer / shorter;
  return image.width < image.height ? resample(image, side, other, filter)
                                    : resample(image, other, side, filter);
}

Image crop(const Image& image, int64_t left, int64_t top, int64_t width, int64_t height) {
  const bool valid = left >= 0 && top >= 0 && width > 0 && height > 0 && width <= image.width &&
                     height <= image.height && left <= image.width - width &&
                     top <= image.height - height;
  if (!valid) {
    throw std::invalid_argument(
        "crop: must be inside the picture of " + size_text(image.width, image.height) + ", got " +
        size_text(width, height) + " at " + std::to_string(left) + ", " + std::to_string(top));
  }
  Image result(width, height);
  for (int64_t y = 0; y < height; ++y) {
    std::copy_n(image.at(top + y, left), width * Image::kChannels, result.at(y, 0));
  }
  return result;
}

Image center_crop(const Image& image, int64_t side) {
  const auto offset = [side](int64_t length) {
    const int64_t twice = length - side;
    const int64_t half = twice / 2;
    return twice % 2 != 0 && half % 2 != 0 ? half + 1 : half;  // ties to even
  };
  return crop(image, offset(image.width), offset(image.height), side, side);
}

}  // namespace elliptical::data
