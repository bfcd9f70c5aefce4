// SPDX-License-Identifier: MIT
//
// Drops on the lens: where smoothed noise is above a threshold there is liquid. Water is bright,
// and brightest at one side of the rims of its drops; mud covers what is behind it. First the
// parameters of ImageNet-C, then those of CIFAR-10-C.
#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "elliptical/base/distributions.h"
#include "elliptical/data/corrupt/canny_impl.h"
#include "elliptical/data/corrupt/gaussian_filter_impl.h"
#include "elliptical/data/corrupt/operators_impl.h"

namespace elliptical::data {
namespace {

using Rgb = std::array<double, 3>;
constexpr Rgb kWater = {175 / 255., 238 / 255., 238 / 255.};
constexpr Rgb kMud = {63 / 255., 42 / 255., 20 / 255.};

using Bytes = std::vector<uint8_t>;

/// Sum of weights[dy][dx] times the 3 x 3 neighbours, reflected at the border.
template <class T>
std::vector<double> sum_around(const std::vector<T>& values,
                               int64_t width,
                               int64_t height,
                               const std::array<std::array<double, 3>, 3>& weights) {
  std::vector<double> sums(values.size());
  for (int64_t y = 0; y < height; ++y) {
    for (int64_t x = 0; x < width; ++x) {
      double sum = 0;
      for (int64_t dy = -1; dy <= 1; ++dy) {
        const int64_t row = reflect_index(y + dy, height) * width;
        for (int64_t dx = -1; dx <= 1; ++dx) {
          sum += weights[dy + 1][dx + 1] * values[row + reflect_index(x + dx, width)];
        }
      }
      sums[y * width + x] = sum;
    }
  }
  return sums;
}

constexpr std::array<std::array<double, 3>, 3> kMean = {
    {{1. / 9, 1. / 9, 1. / 9}, {1. / 9, 1. / 9, 1. / 9}, {1. / 9, 1. / 9, 1. / 9}}};
/// Light from one side.
constexpr std::array<std::array<double, 3>, 3> kRelief = {{{-2, -1, 0}, {-1, 1, 1}, {0, 1, 2}}};

Bytes rounded(const std::vector<double>& values) {
  Bytes bytes(values.size());
  std::transform(values.begin(), values.end(), bytes.begin(), [](double value) {
    return static_cast<uint8_t>(std::clamp(std::nearbyint(value), 0.0, 255.0));
  });
  return bytes;
}

/// OpenCV's equalisation, not Pillow's: the lowest level becomes 0, the highest 255.
Bytes equalized(const Bytes& bytes) {
  std::array<int64_t, 256> counts{};
  for (const uint8_t byte : bytes) ++counts[byte];
  const uint8_t lowest = *std::min_element(bytes.begin(), bytes.end());
  const auto others = static_cast<int64_t>(bytes.size()) - counts[lowest];
  if (others == 0) return bytes;
  std::array<uint8_t, 256> table{};
  int64_t sum = 0;
  for (int level = lowest + 1; level < 256; ++level) {
    sum += counts[level];
    table[level] = static_cast<uint8_t>(
        std::nearbyint(255.0 * static_cast<double>(sum) / static_cast<double>(others)));
  }
  Bytes result(bytes.size());
  std::transform(bytes.begin(), bytes.end(), result.begin(),
                 [&](uint8_t byte) { return table[byte]; });
  return result;
}

/// How bright the water is at each place, in [0, 1].
std::vector<double> water_light(const Bytes& liquid, int64_t width, int64_t height) {
  constexpr int kLowEdge = 50, kHighEdge = 150;
  constexpr float kFarthest = 20;
  std::vector<float> distances =
      distance_to(canny_edges(liquid, width, height, kLowEdge, kHighEdge), width, height);
  for (float& distance : distances) distance = std::min(distance, kFarthest);
  const std::vector<double> smooth = sum_around(distances, width, height, kMean);
  Bytes light(smooth.size());
  std::transform(smooth.begin(), smooth.end(), light.begin(), [](double value) {
    return static_cast<uint8_t>(value + 1e-6);  // the mean of nine equal numbers is that number
  });
  light = rounded(sum_around(equalized(light), width, height, kRelief));
  light = rounded(sum_around(light, width, height, kMean));

  std::vector<double> product(light.size());
  for (size_t i = 0; i < product.size(); ++i) product[i] = liquid[i] * light[i];
  const double brightest = *std::max_element(product.begin(), product.end());
  for (double& value : product) value = brightest > 0 ? value / brightest : 0;
  return product;
}

}  // namespace

Image spatter(const Image& picture, const CorruptionContext& context) {
  /// `last` is how bright water is, or the sigma that smooths the rims of mud.
  struct Spatter {
    double mean, deviation, sigma, threshold, last;
    bool is_mud;
  };
  static constexpr Severities<Spatter> kImageNet = {{{.65, .3, 4, .69, .6, false},
                                                     {.65, .3, 3, .68, .6, false},
                                                     {.65, .3, 2, .68, .5, false},
                                                     {.65, .3, 1, .65, 1.5, true},
                                                     {.67, .4, 1, .65, 1.5, true}}};
  static constexpr Severities<Spatter> kCifar = {{{.62, .1, .7, .7, .5, false},
                                                  {.65, .1, .8, .7, .5, false},
                                                  {.65, .3, 1, .69, .5, false},
                                                  {.65, .1, .7, .69, .6, true},
                                                  {.65, .1, .5, .68, .6, true}}};
  const Spatter spatter = context.choose(kImageNet, kCifar);
  RandomStream random(context.key);
  Field liquid(picture.width, picture.height);
  draw_normals(random, spatter.mean, spatter.deviation, liquid.values.data(),
               static_cast<int64_t>(liquid.values.size()));
  gaussian_filter(liquid, spatter.sigma * context.scale);

  Field field = to_field(picture);
  if (spatter.is_mud) {
    constexpr double kThinnest = 0.8;
    for (double& value : liquid.values) value = value > spatter.threshold ? 1 : 0;
    gaussian_filter(liquid, spatter.last * context.scale);
    for (size_t i = 0; i < field.values.size(); ++i) {
      const double mud = liquid.values[i / 3] < kThinnest ? 0 : liquid.values[i / 3];
      field.values[i] = field.values[i] * (1 - mud) + mud * kMud[i % 3];
    }
  } else {
    Bytes bytes(liquid.values.size());
    std::transform(liquid.values.begin(), liquid.values.end(), bytes.begin(),
                   [&](double value) { return value < spatter.threshold ? 0 : to_byte(value); });
    const std::vector<double> light = water_light(bytes, picture.width, picture.height);
    for (size_t i = 0; i < field.values.size(); ++i) {
      field.values[i] += spatter.last * light[i / 3] * kWater[i % 3];
    }
  }
  return to_image(field);
}

}  // namespace elliptical::data
