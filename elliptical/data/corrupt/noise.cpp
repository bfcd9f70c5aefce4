// SPDX-License-Identifier: MIT
//
// Noise: x + s N, Poisson(l x) / l, salt and pepper, x + x s N. First the parameters of ImageNet-C,
// then those of CIFAR-10-C.
#include <algorithm>
#include <cmath>
#include <vector>

#include "elliptical/base/distributions.h"
#include "elliptical/data/corrupt/operators_impl.h"

namespace elliptical::data {
namespace {

/// Adds noise of that deviation; in proportion to the value if asked for.
Image add_noise(const Image& picture, double deviation, bool is_proportional, RandomKey key) {
  Field field = to_field(picture);
  std::vector<double> noise(field.values.size());
  RandomStream random(key);
  draw_normals(random, 0, deviation, noise.data(), static_cast<int64_t>(noise.size()));
  for (size_t i = 0; i < noise.size(); ++i) {
    double& value = field.values[i];
    value += is_proportional ? value * noise[i] : noise[i];
  }
  return to_image(field);
}

/// Poisson numbers with a mean that is one of the 256 values of a byte times `rate`; by inverting
/// the distribution function, which is tabulated once for each byte that occurs.
class PoissonTable {
 public:
  explicit PoissonTable(double rate) : rate_(rate), sums_(256) {}

  int64_t draw(uint8_t byte, RandomStream& random) {
    std::vector<double>& sums = sums_[byte];
    if (sums.empty()) sums = make_sums(rate_ * byte / 255.0);
    const auto place = std::upper_bound(sums.begin(), sums.end(), random.uniform());
    return place - sums.begin();
  }

 private:
  /// P(at most k), k = 0, 1, ... up to where it is 1 in double precision.
  static std::vector<double> make_sums(double mean) {
    std::vector<double> sums;
    double term = std::exp(-mean), sum = term;
    const double last = mean + 10 * std::sqrt(mean) + 20;
    for (double k = 1; k <= last; ++k) {
      sums.push_back(sum);
      term *= mean / k;
      sum += term;
    }
    return sums;
  }

  double rate_;
  std::vector<std::vector<double>> sums_;
};

}  // namespace

Image gaussian_noise(const Image& picture, const CorruptionContext& context) {
  static constexpr Severities<double> kImageNet = {.08, .12, .18, .26, .38};
  static constexpr Severities<double> kCifar = {.04, .06, .08, .09, .10};
  return add_noise(picture, context.choose(kImageNet, kCifar), false, context.key);
}

Image speckle_noise(const Image& picture, const CorruptionContext& context) {
  static constexpr Severities<double> kImageNet = {.15, .2, .35, .45, .6};
  static constexpr Severities<double> kCifar = {.06, .1, .12, .16, .2};
  return add_noise(picture, context.choose(kImageNet, kCifar), true, context.key);
}

Image shot_noise(const Image& picture, const CorruptionContext& context) {
  static constexpr Severities<double> kImageNet = {60, 25, 12, 5, 3};
  static constexpr Severities<double> kCifar = {500, 250, 100, 75, 50};
  const double rate = context.choose(kImageNet, kCifar);
  PoissonTable poisson(rate);
  RandomStream random(context.key);
  Image result = picture;
  for (uint8_t& value : result.pixels) {
    value = to_byte(static_cast<double>(poisson.draw(value, random)) / rate);
  }
  return result;
}

Image impulse_noise(const Image& picture, const CorruptionContext& context) {
  static constexpr Severities<double> kImageNet = {.03, .06, .09, .17, .27};
  static constexpr Severities<double> kCifar = {.01, .02, .03, .05, .07};
  const double amount = context.choose(kImageNet, kCifar);
  RandomStream random(context.key);
  Image result = picture;
  for (uint8_t& value : result.pixels) {
    const double u = random.uniform();
    if (u < amount) value = u < amount / 2 ? 255 : 0;
  }
  return result;
}

}  // namespace elliptical::data
