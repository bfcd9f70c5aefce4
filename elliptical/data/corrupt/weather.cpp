// SPDX-License-Identifier: MIT
//
// Snow, frost, fog. First the parameters of ImageNet-C, then those of CIFAR-10-C.
#include <algorithm>
#include <bit>

#include "elliptical/base/distributions.h"
#include "elliptical/base/errors.h"
#include "elliptical/data/corrupt/motion_blur_impl.h"
#include "elliptical/data/corrupt/operators_impl.h"
#include "elliptical/data/corrupt/plasma_impl.h"
#include "elliptical/data/corrupt/zoom_impl.h"
#include "elliptical/data/image/resample.h"

namespace elliptical::data {
namespace {

/// A part of one of the frost pictures; those that are too small are enlarged first.
Image draw_frost(const CorruptionContext& context, int64_t width, int64_t height) {
  RandomStream random(context.key);
  const std::vector<Image>& pictures =
      context.is_small ? context.frost->small : context.frost->large;
  Image frost = pictures[random.below(pictures.size())];
  // One pixel of freedom at least: the released code never takes the last place.
  const double missing =
      std::max(static_cast<double>(width + 1) / static_cast<double>(frost.width),
               static_cast<double>(height + 1) / static_cast<double>(frost.height));
  if (missing > 1) {
    const auto enlarged = [missing](int64_t side) {
      return static_cast<int64_t>(std::ceil(static_cast<double>(side) * missing));
    };
    frost = resample(frost, enlarged(frost.width), enlarged(frost.height), Filter::kBilinear);
  }
  const auto top = static_cast<int64_t>(random.below(frost.height - height));
  const auto left = static_cast<int64_t>(random.below(frost.width - width));
  return crop(frost, left, top, width, height);
}

}  // namespace

Image snow(const Image& picture, const CorruptionContext& context) {
  struct Snow {
    double mean, deviation, zoom, threshold, radius, sigma, mix;
  };
  static constexpr Severities<Snow> kImageNet = {{{.1, .3, 3, .5, 10, 4, .8},
                                                  {.2, .3, 2, .5, 12, 4, .7},
                                                  {.55, .3, 4, .9, 12, 8, .7},
                                                  {.55, .3, 4.5, .85, 12, 8, .65},
                                                  {.55, .3, 2.5, .85, 12, 12, .55}}};
  static constexpr Severities<Snow> kCifar = {{{.1, .2, 1, .6, 8, 3, .95},
                                               {.1, .2, 1, .5, 10, 4, .9},
                                               {.15, .3, 1.75, .55, 10, 4, .9},
                                               {.25, .3, 2.25, .6, 12, 6, .85},
                                               {.3, .3, 1.25, .65, 14, 12, .8}}};
  const Snow snow = context.choose(kImageNet, kCifar);
  RandomStream random(context.key);
  Field flakes(picture.width, picture.height);
  draw_normals(random, snow.mean, snow.deviation, flakes.values.data(),
               static_cast<int64_t>(flakes.values.size()));
  flakes = zoom_centre(flakes, snow.zoom);
  std::vector<uint8_t> layer(flakes.values.size());
  std::transform(flakes.values.begin(), flakes.values.end(), layer.begin(),
                 [&](double value) { return value < snow.threshold ? 0 : to_byte(value); });
  layer = motion_blur(layer, picture.width, picture.height, 1,
                      motion_taps(context.pixels(snow.radius), snow.sigma * context.scale,
                                  draw_uniform(random, -135, -45)));

  Field field = to_field(picture);
  const size_t count = layer.size();
  for (size_t i = 0; i < count; ++i) {
    double* const pixel = &field.values[i * Image::kChannels];
    const double grey = 0.299 * pixel[0] + 0.587 * pixel[1] + 0.114 * pixel[2];
    // The layer falls twice, once rotated by 180 degrees.
    const double fallen = (layer[i] + layer[count - 1 - i]) / 255.0;
    for (int64_t c = 0; c < Image::kChannels; ++c) {
      const double whitened = std::max(pixel[c], 1.5 * grey + 0.5);
      pixel[c] = snow.mix * pixel[c] + (1 - snow.mix) * whitened + fallen;
    }
  }
  return to_image(field);
}

Image frost(const Image& picture, const CorruptionContext& context) {
  struct Weights {
    double picture, frost;
  };
  static constexpr Severities<Weights> kImageNet = {
      {{1, .4}, {.8, .6}, {.7, .7}, {.65, .7}, {.6, .75}}};
  static constexpr Severities<Weights> kCifar = {
      {{1, .2}, {1, .3}, {.9, .4}, {.85, .4}, {.75, .45}}};
  if (context.frost == nullptr || context.frost->large.empty()) {
    throw SetupError(
        "corruption frost: the frost pictures must be there, got none (run: elliptical data get "
        "frost)");
  }
  const Weights weights = context.choose(kImageNet, kCifar);
  const Image layer = draw_frost(context, picture.width, picture.height);
  Image result = picture;
  for (size_t i = 0; i < result.pixels.size(); ++i) {
    result.pixels[i] =
        to_byte((weights.picture * picture.pixels[i] + weights.frost * layer.pixels[i]) / 255.0);
  }
  return result;
}

Image fog(const Image& picture, const CorruptionContext& context) {
  struct Fog {
    double strength, decay;
  };
  static constexpr Severities<Fog> kImageNet = {
      {{1.5, 2}, {2, 2}, {2.5, 1.7}, {2.5, 1.5}, {3, 1.4}}};
  static constexpr Severities<Fog> kCifar = {{{.2, 3}, {.5, 3}, {.75, 2.5}, {1, 2}, {1.5, 1.75}}};
  const Fog fog = context.choose(kImageNet, kCifar);
  const auto longer = static_cast<uint64_t>(std::max(picture.width, picture.height));
  const Field clouds = plasma(static_cast<int64_t>(std::bit_ceil(longer)), fog.decay, context.key);
  Field field = to_field(picture);
  const double brightest = *std::max_element(field.values.begin(), field.values.end());
  const double scale = brightest / (brightest + fog.strength);
  for (int64_t y = 0; y < field.height; ++y) {
    for (int64_t x = 0; x < field.width; ++x) {
      const double cloud = fog.strength * *clouds.at(y, x);
      double* const pixel = field.at(y, x);
      for (int64_t c = 0; c < Image::kChannels; ++c) pixel[c] = (pixel[c] + cloud) * scale;
    }
  }
  return to_image(field);
}

}  // namespace elliptical::data
