// SPDX-License-Identifier: MIT
//
// Elastic transform, pixels, JPEG. First the parameters of ImageNet-C, then those of CIFAR-10-C.
#include <algorithm>

#include "elliptical/base/distributions.h"
#include "elliptical/data/corrupt/gaussian_filter_impl.h"
#include "elliptical/data/corrupt/operators_impl.h"
#include "elliptical/data/corrupt/warp_impl.h"
#include "elliptical/data/image/codec.h"
#include "elliptical/data/image/resample.h"

namespace elliptical::data {
namespace {

/// A smooth random field: uniform noise, filtered and scaled.
Field draw_shifts(const Field& like, double amount, double sigma, RandomStream& random) {
  Field shifts(like.width, like.height);
  if (amount == 0) return shifts;
  for (double& value : shifts.values) value = draw_uniform(random, -1, 1);
  gaussian_filter(shifts, sigma, Border::kMirror, 3.0);
  for (double& value : shifts.values) value *= amount;
  return shifts;
}

/// What three points around the centre undergo, each moved by up to `jitter` in x and y.
PlaneMap draw_affine(const Field& field, double jitter, RandomStream& random) {
  const auto x = static_cast<double>(field.width / 2), y = static_cast<double>(field.height / 2);
  const auto third = static_cast<double>(std::min(field.width, field.height) / 3);
  const std::array<Point, 3> from = {
      Point{x + third, y + third}, {x + third, y - third}, {x - third, y - third}};
  std::array<Point, 3> to = from;
  for (Point& point : to) {
    point.x += draw_uniform(random, -jitter, jitter);
    point.y += draw_uniform(random, -jitter, jitter);
  }
  return affine_map(to, from);  // of the result to the picture
}

}  // namespace

Image elastic_transform(const Image& picture, const CorruptionContext& context) {
  /// In units of 244 pixels (which is what the released code has, for pictures of 224) and of 32.
  struct Elastic {
    double amount, sigma, jitter;
  };
  static constexpr Severities<Elastic> kImageNet = {
      {{2, .7, .1}, {2, .08, .2}, {.05, .01, .02}, {.07, .01, .02}, {.12, .01, .02}}};
  static constexpr Severities<Elastic> kCifar = {
      {{0, 0, .08}, {.05, .2, .07}, {.08, .06, .06}, {.1, .04, .05}, {.1, .03, .03}}};
  const Elastic elastic = context.choose(kImageNet, kCifar);
  const double unit = (context.is_small ? 32 : 244) * context.scale;
  RandomStream random(context.key);

  Field field = to_field(picture);
  const PlaneMap source = draw_affine(field, unit * elastic.jitter, random);
  field = warp(field, reflect_index, [&](int64_t x, int64_t y) {
    return source({static_cast<double>(x), static_cast<double>(y)});
  });
  const Field dx = draw_shifts(field, unit * elastic.amount, unit * elastic.sigma, random);
  const Field dy = draw_shifts(field, unit * elastic.amount, unit * elastic.sigma, random);
  return to_image(warp(field, mirror_index, [&](int64_t x, int64_t y) {
    return Point{static_cast<double>(x) + *dx.at(y, x), static_cast<double>(y) + *dy.at(y, x)};
  }));
}

Image pixelate(const Image& picture, const CorruptionContext& context) {
  static constexpr Severities<double> kImageNet = {.6, .5, .4, .3, .25};
  static constexpr Severities<double> kCifar = {.95, .9, .85, .75, .65};
  const double factor = context.choose(kImageNet, kCifar);
  const auto fewer = [factor](int64_t side) {
    return std::max<int64_t>(1, static_cast<int64_t>(static_cast<double>(side) * factor));
  };
  const Image coarse = resample(picture, fewer(picture.width), fewer(picture.height), Filter::kBox);
  return resample(coarse, picture.width, picture.height, Filter::kBox);
}

Image jpeg_round_trip(const Image& picture, int quality) {
  return decode_image(encode_jpeg(picture, quality), "jpeg_round_trip");
}

Image jpeg_compression(const Image& picture, const CorruptionContext& context) {
  static constexpr Severities<int> kImageNet = {25, 18, 15, 10, 7};
  static constexpr Severities<int> kCifar = {80, 65, 58, 50, 40};
  return jpeg_round_trip(picture, context.choose(kImageNet, kCifar));
}

}  // namespace elliptical::data
