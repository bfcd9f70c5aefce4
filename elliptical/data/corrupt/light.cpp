// SPDX-License-Identifier: MIT
//
// Brightness, contrast, saturation. First the parameters of ImageNet-C, then those of CIFAR-10-C.
#include <algorithm>

#include "elliptical/data/corrupt/hsv_impl.h"
#include "elliptical/data/corrupt/operators_impl.h"

namespace elliptical::data {
namespace {

/// Changes one of hue, saturation and value, the result clipped to [0, 1].
template <class F>
Image change_hsv(const Image& picture, size_t component, F change) {
  Field field = to_field(picture);
  for (size_t i = 0; i < field.values.size(); i += Image::kChannels) {
    std::array<double, 3> hsv = to_hsv(&field.values[i]);
    hsv[component] = std::clamp(change(hsv[component]), 0.0, 1.0);
    const std::array<double, 3> rgb = to_rgb(hsv);
    std::copy(rgb.begin(), rgb.end(), &field.values[i]);
  }
  return to_image(field);
}

}  // namespace

Image brightness(const Image& picture, const CorruptionContext& context) {
  static constexpr Severities<double> kImageNet = {.1, .2, .3, .4, .5};
  static constexpr Severities<double> kCifar = {.05, .1, .15, .2, .3};
  const double more = context.choose(kImageNet, kCifar);
  return change_hsv(picture, 2, [more](double value) { return value + more; });
}

Image saturate(const Image& picture, const CorruptionContext& context) {
  struct Line {
    double scale, shift;
  };
  static constexpr Severities<Line> kImageNet = {{{.3, 0}, {.1, 0}, {2, 0}, {5, .1}, {20, .2}}};
  static constexpr Severities<Line> kCifar = {{{.3, 0}, {.1, 0}, {1.5, 0}, {2, .1}, {2.5, .2}}};
  const Line line = context.choose(kImageNet, kCifar);
  return change_hsv(picture, 1,
                    [line](double saturation) { return saturation * line.scale + line.shift; });
}

Image contrast(const Image& picture, const CorruptionContext& context) {
  static constexpr Severities<double> kImageNet = {.4, .3, .2, .1, .05};
  static constexpr Severities<double> kCifar = {.75, .5, .4, .3, .15};
  const double factor = context.choose(kImageNet, kCifar);
  // Means of whole numbers, so that a constant picture has exactly itself as its mean.
  std::array<int64_t, Image::kChannels> sums{};
  for (size_t i = 0; i < picture.pixels.size(); ++i) sums[i % 3] += picture.pixels[i];
  const auto count = static_cast<double>(picture.width * picture.height);
  Image result = picture;
  for (size_t i = 0; i < result.pixels.size(); ++i) {
    const double mean = static_cast<double>(sums[i % 3]) / count;
    result.pixels[i] = to_byte(((result.pixels[i] - mean) * factor + mean) / 255.0);
  }
  return result;
}

}  // namespace elliptical::data
