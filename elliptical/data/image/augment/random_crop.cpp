// SPDX-License-Identifier: MIT
#include "elliptical/data/image/augment/random_crop.h"

#include <array>
#include <cmath>
#include <vector>

#include "elliptical/base/distributions.h"
#include "elliptical/base/errors.h"
#include "elliptical/base/names.h"
#include "elliptical/base/option_limits.h"
#include "elliptical/data/image/resample.h"

namespace elliptical::data {
namespace {

const std::vector<std::string>& crop_names() {
  static const std::vector<std::string> names = {"resized", "padded", "whole"};  // as in CropKind
  return names;
}

/// The whole picture; one that has the size already is not touched.
Image resized(const Image& picture, int64_t size) {
  return resample(picture, size, size, Filter::kBicubic);
}

}  // namespace

std::string to_string(CropKind kind) { return crop_names()[static_cast<size_t>(kind)]; }

CropKind crop_kind_from_string(const std::string& name) {
  for (size_t i = 0; i < crop_names().size(); ++i) {
    if (crop_names()[i] == name) return static_cast<CropKind>(i);
  }
  throw UsageError("crop: " + unknown_name(name, crop_names()));
}

void CropOptions::visit(FieldList& fields) {
  fields.add_enum("kind", kind, crop_names(), crop_kind_from_string,
                  "a random box resized, the whole padded and shifted, or just the whole");
  fields.add("min_area", min_area, "resized: smallest box / picture", between(0, 1));
  fields.add("max_area", max_area, "resized: largest box / picture",
             Limits{.low = 0, .high = 1, .open_low = true});
  fields.add("max_aspect", max_aspect, "resized: longest box, width / height or its inverse",
             between(1, 1e6));
  fields.add("padding", padding, "padded: pixels of black on each side", between(0, kMostSide));
}

Box draw_crop_box(const CropOptions& options, int64_t width, int64_t height, RandomStream& random) {
  constexpr int kTries = 10;
  const double log_aspect = std::log(options.max_aspect);
  for (int i = 0; i < kTries; ++i) {
    const double area = draw_uniform(random, options.min_area, options.max_area) *
                        static_cast<double>(width * height);
    const double aspect = std::exp(draw_uniform(random, -log_aspect, log_aspect));
    Box box;
    box.width = std::llrint(std::sqrt(area * aspect));
    box.height = std::llrint(std::sqrt(area / aspect));
    const bool fits =
        box.width >= 1 && box.width <= width && box.height >= 1 && box.height <= height;
    if (!fits) continue;
    box.top = static_cast<int64_t>(random.below(height - box.height + 1));
    box.left = static_cast<int64_t>(random.below(width - box.width + 1));
    return box;
  }
  Box box{.width = width, .height = height};
  const double aspect = static_cast<double>(width) / static_cast<double>(height);
  if (aspect < 1.0 / options.max_aspect) {
    box.height = std::llrint(static_cast<double>(width) * options.max_aspect);
  } else if (aspect > options.max_aspect) {
    box.width = std::llrint(static_cast<double>(height) * options.max_aspect);
  }
  box.top = (height - box.height) / 2;
  box.left = (width - box.width) / 2;
  return box;
}

Image random_crop(const Image& picture, const CropOptions& options, int64_t size, RandomKey key) {
  RandomStream random(key);
  switch (options.kind) {
    case CropKind::kResized: {
      const Box box = draw_crop_box(options, picture.width, picture.height, random);
      return resized(crop(picture, box.left, box.top, box.width, box.height), size);
    }
    case CropKind::kPadded: {
      const auto left = static_cast<int64_t>(random.below(2 * options.padding + 1));
      const auto top = static_cast<int64_t>(random.below(2 * options.padding + 1));
      return crop(pad(resized(picture, size), options.padding, {0, 0, 0}), left, top, size, size);
    }
    case CropKind::kWhole:
      break;
  }
  return resized(picture, size);
}

}  // namespace elliptical::data
