// SPDX-License-Identifier: MIT
//
// Blurs. First the parameters of ImageNet-C, then those of CIFAR-10-C; lengths are in pixels of a
// side of 224 and of 32.
#include <algorithm>
#include <cmath>

#include "elliptical/base/distributions.h"
#include "elliptical/data/corrupt/disc_kernel_impl.h"
#include "elliptical/data/corrupt/gaussian_filter_impl.h"
#include "elliptical/data/corrupt/motion_blur_impl.h"
#include "elliptical/data/corrupt/operators_impl.h"
#include "elliptical/data/corrupt/zoom_impl.h"

namespace elliptical::data {
namespace {

Image gaussian_filtered(const Image& picture, double sigma) {
  Field field = to_field(picture);
  gaussian_filter(field, sigma);
  return to_image(field);
}

}  // namespace

Image gaussian_blur(const Image& picture, const CorruptionContext& context) {
  static constexpr Severities<double> kImageNet = {1, 2, 3, 4, 6};
  static constexpr Severities<double> kCifar = {.4, .6, .7, .8, 1};
  return gaussian_filtered(picture, context.choose(kImageNet, kCifar) * context.scale);
}

Image defocus_blur(const Image& picture, const CorruptionContext& context) {
  struct Disc {
    double radius, alias_sigma;
  };
  static constexpr Severities<Disc> kImageNet = {{{3, .1}, {4, .5}, {6, .5}, {8, .5}, {10, .5}}};
  static constexpr Severities<Disc> kCifar = {{{.3, .4}, {.4, .5}, {.5, .6}, {1, .2}, {1.5, .1}}};
  const Disc disc = context.choose(kImageNet, kCifar);
  return to_image(
      correlate(to_field(picture), disc_kernel(disc.radius * context.scale, disc.alias_sigma)));
}

Image glass_blur(const Image& picture, const CorruptionContext& context) {
  struct Glass {
    double sigma, shift;
    int passes;
  };
  static constexpr Severities<Glass> kImageNet = {
      {{.7, 1, 2}, {.9, 2, 1}, {1, 2, 3}, {1.1, 3, 2}, {1.5, 4, 2}}};
  static constexpr Severities<Glass> kCifar = {
      {{.05, 1, 1}, {.25, 1, 1}, {.4, 1, 1}, {.25, 1, 2}, {.4, 1, 2}}};
  const Glass glass = context.choose(kImageNet, kCifar);
  const double sigma = glass.sigma * context.scale;
  const int64_t shift = context.pixels(glass.shift);
  RandomStream random(context.key);
  const auto draw_shift = [&] { return static_cast<int64_t>(random.below(2 * shift)) - shift; };

  Image shuffled = gaussian_filtered(picture, sigma);
  for (int pass = 0; pass < glass.passes; ++pass) {
    for (int64_t y = picture.height - shift; y > shift; --y) {
      for (int64_t x = picture.width - shift; x > shift; --x) {
        const int64_t dx = draw_shift(), dy = draw_shift();
        // Meant as an exchange, but the released pictures were made with a copy: a pixel may come
        // to stand at several places.
        std::copy_n(shuffled.at(y + dy, x + dx), Image::kChannels, shuffled.at(y, x));
      }
    }
  }
  return gaussian_filtered(shuffled, sigma);
}

Image camera_motion_blur(const Image& picture, const CorruptionContext& context) {
  struct Motion {
    double radius, sigma;
  };
  static constexpr Severities<Motion> kImageNet = {{{10, 3}, {15, 5}, {15, 8}, {15, 12}, {20, 15}}};
  static constexpr Severities<Motion> kCifar = {{{6, 1}, {6, 1.5}, {6, 2}, {8, 2}, {9, 2.5}}};
  const Motion motion = context.choose(kImageNet, kCifar);
  RandomStream random(context.key);
  Image result(picture.width, picture.height);
  result.pixels =
      motion_blur(picture.pixels, picture.width, picture.height, Image::kChannels,
                  motion_taps(context.pixels(motion.radius), motion.sigma * context.scale,
                              draw_uniform(random, -45, 45)));
  return result;
}

Image zoom_blur(const Image& picture, const CorruptionContext& context) {
  struct Zoom {
    double step;
    int count;
  };
  static constexpr Severities<Zoom> kImageNet = {
      {{.01, 12}, {.01, 16}, {.02, 11}, {.02, 13}, {.03, 11}}};
  static constexpr Severities<Zoom> kCifar = {
      {{.01, 7}, {.01, 12}, {.01, 16}, {.01, 21}, {.01, 26}}};
  const Zoom zoom = context.choose(kImageNet, kCifar);
  // Factors are those of numpy.arange, to the last bit: 26 pixels times 1.25 are 32.5, and whether
  // that is 32 or 33 depends on it.
  const double step = (1 + zoom.step) - 1;
  const Field field = to_field(picture);
  Field sum = field;
  for (int i = 0; i < zoom.count; ++i) {
    const Field closer = zoom_centre(field, 1 + i * step);
    for (size_t k = 0; k < sum.values.size(); ++k) sum.values[k] += closer.values[k];
  }
  for (double& value : sum.values) value /= zoom.count + 1;
  return to_image(sum);
}

}  // namespace elliptical::data
