// SPDX-License-Identifier: MIT
//
// The part of a picture that training sees: a box of random size, shape and place, brought to the
// size of the model (ImageNet), or a shifted copy of the whole (CIFAR).
#pragma once

#include <cstdint>
#include <string>

#include "elliptical/base/options.h"
#include "elliptical/base/random.h"
#include "elliptical/data/image/augment/geometry.h"
#include "elliptical/data/image/image.h"

namespace elliptical::data {

enum class CropKind { kResized, kPadded, kWhole };
std::string to_string(CropKind kind);
CropKind crop_kind_from_string(const std::string& name);  ///< UsageError for unknown names

struct CropOptions {
  CropKind kind = CropKind::kResized;
  double min_area = 0.08;
  double max_area = 1.0;
  double max_aspect = 4.0 / 3.0;
  int64_t padding = 4;

  void visit(FieldList& fields);
};

/// The box of a resized crop: area and aspect (log-uniform) are drawn up to ten times until the box
/// fits; otherwise the largest centred box of an allowed aspect.
Box draw_crop_box(const CropOptions& options, int64_t width, int64_t height, RandomStream& random);

/// A (size, size) picture:
///   resized  a random box, bicubic
///   padded   the whole at that size with black around it, cut at a random place
///   whole    the whole at that size, bicubic
Image random_crop(const Image& picture, const CropOptions& options, int64_t size, RandomKey key);

}  // namespace elliptical::data
