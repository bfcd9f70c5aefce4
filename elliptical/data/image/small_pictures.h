// SPDX-License-Identifier: MIT
//
// Made-up pictures in 10 classes, so that image models train and are compared without any download.
// Each shows one shape (disc, ring, square, frame, triangle, cross, star, crescent, bars, dots) of
// random place, size, turn and colour in front of a random texture, with noise over everything.
// What tells the class, from easy to hard:
//   - colour: half of the pictures have the hue of their class, the others any hue, so colour alone
//     names a little over half of them;
//   - form: disc and ring, square and frame differ in their inside only, cross and star in their
//     corners, at any place and between 3/10 and 6/10 of the side.
#pragma once

#include <string_view>

#include "elliptical/data/image/image_set.h"

namespace elliptical::data {

inline constexpr std::string_view kSmallPictures = "small-pictures";

struct SmallPicturesOptions {
  int64_t side = 32;
  int64_t train_pictures = 10'000;
  int64_t eval_pictures = 1'000;  ///< of valid and of test
  uint64_t seed = 1;
};

/// A picture depends on seed, split, its number and the side only. Classes take turns.
class SmallPictures : public ImageSet {
 public:
  explicit SmallPictures(Split split, const SmallPicturesOptions& options = {});

  int64_t size() const override;
  int64_t label(int64_t index) const override { return index % num_classes(); }
  std::string origin(int64_t index) const override;
  std::map<std::string, std::string> fingerprint() const override;

 protected:
  Image read(int64_t index) const override;

 private:
  Split split_;
  SmallPicturesOptions options_;
};

}  // namespace elliptical::data
