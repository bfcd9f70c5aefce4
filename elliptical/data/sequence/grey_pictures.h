// SPDX-License-Identifier: MIT
//
// Pictures as sequences of grey values, row by row, as Long Range Arena has CIFAR-10: 32 x 32
// pixels are 1,024 ids.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "elliptical/data/image/image_set.h"
#include "elliptical/data/sequence/sequence_set.h"

namespace elliptical::data {

/// trunc(255.5 (0.2989 R + 0.5870 G + 0.1140 B) / 255): white 255, black 0. A grey pixel keeps its
/// value, but for rounding: the three weights sum to 0.9999.
std::vector<uint8_t> luma_values(const Image& image);

/// Of a picture that is grey in colours: its first channel.
std::vector<uint8_t> grey_values(const Image& image);

/// Throws DataError "NAME: must be 32 x 32 pixels, is 40 x 30" unless the picture has that size.
void require_side(const Image& image, int64_t side, const std::string& name);

/// Any set of pictures of side x side pixels. Pictures are read when they are asked for.
std::unique_ptr<SequenceSet> open_grey_pictures(std::unique_ptr<ImageSet> pictures,
                                                Split split,
                                                const OpenSequencesOptions& options);

}  // namespace elliptical::data
