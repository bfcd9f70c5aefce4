// SPDX-License-Identifier: MIT
#include "elliptical/data/image/augment/rand_augment.h"

#include <algorithm>

#include "elliptical/base/distributions.h"
#include "elliptical/data/image/augment/colour.h"

namespace elliptical::data {
namespace {

constexpr double kMaxMagnitude = 10;
constexpr double kMaxDegrees = 30, kMaxShear = 0.3, kMaxShift = 0.45, kMaxEnhance = 0.9;

double factor(OperationStrength strength) { return 1.0 + strength.sign * kMaxEnhance * strength.v; }

double shear(OperationStrength strength) { return strength.sign * kMaxShear * strength.v; }

/// In pixels of a side.
double shift(OperationStrength strength, int64_t side) {
  return strength.sign * kMaxShift * strength.v * static_cast<double>(side);
}

}  // namespace

const std::vector<AugmentOperation>& rand_augment_operations() {
  using S = OperationStrength;
  static const std::vector<AugmentOperation> operations = {
      {"AutoContrast", [](Image& p, S, Colour) { auto_contrast(p); }},
      {"Equalize", [](Image& p, S, Colour) { equalize(p); }},
      {"Invert", [](Image& p, S, Colour) { invert(p); }},
      {"Rotate",
       [](Image& p, S s, Colour fill) {
         p = transform(p, rotation(s.sign * kMaxDegrees * s.v, p.width, p.height), fill);
       }},
      {"Posterize", [](Image& p, S s, Colour) { posterize(p, 4 - static_cast<int>(4 * s.v)); }},
      {"Solarize", [](Image& p, S s, Colour) { solarize(p, 256 - static_cast<int>(256 * s.v)); }},
      {"SolarizeAdd", [](Image& p, S s, Colour) { solarize_add(p, static_cast<int>(110 * s.v)); }},
      {"Color", [](Image& p, S s, Colour) { adjust_colour(p, factor(s)); }},
      {"Contrast", [](Image& p, S s, Colour) { adjust_contrast(p, factor(s)); }},
      {"Brightness", [](Image& p, S s, Colour) { adjust_brightness(p, factor(s)); }},
      {"Sharpness", [](Image& p, S s, Colour) { adjust_sharpness(p, factor(s)); }},
      {"ShearX", [](Image& p, S s, Colour fill) { p = transform(p, {.b = shear(s)}, fill); }},
      {"ShearY", [](Image& p, S s, Colour fill) { p = transform(p, {.d = shear(s)}, fill); }},
      {"TranslateX",
       [](Image& p, S s, Colour fill) { p = transform(p, {.c = shift(s, p.width)}, fill); }},
      {"TranslateY",
       [](Image& p, S s, Colour fill) { p = transform(p, {.f = shift(s, p.height)}, fill); }},
  };
  return operations;
}

void rand_augment(Image& picture, const RandAugmentOptions& options, Colour fill, RandomKey key) {
  const std::vector<AugmentOperation>& operations = rand_augment_operations();
  for (int64_t i = 0; i < options.num_operations; ++i) {
    RandomStream random(key.derive(static_cast<uint64_t>(i)));
    const AugmentOperation& operation = operations[random.below(operations.size())];
    if (!draw_bool(random, options.probability)) continue;
    const double magnitude = options.magnitude + options.magnitude_std * draw_normal(random);
    const double v = std::clamp(magnitude, 0.0, kMaxMagnitude) / kMaxMagnitude;
    operation.apply(picture, {.v = v, .sign = draw_bool(random, 0.5) ? 1.0 : -1.0}, fill);
  }
}

}  // namespace elliptical::data
