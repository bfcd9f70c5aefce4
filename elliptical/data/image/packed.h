// SPDX-License-Identifier: MIT
//
// A few pictures of one size in one file, for tests of pretrained models:
//     imagenet16_images_224x224x3.u8   all pixels, picture after picture, perhaps as .xz
//     imagenet16_labels.tsv            a header line, then `file TAB label [TAB ...]` a picture
//     synset_words.txt                 the classes in the order of labels, `id names` a line
// It is a test set: other splits are refused.
#pragma once

#include <filesystem>
#include <memory>
#include <string_view>

#include "elliptical/data/image/image_set.h"

namespace elliptical::data {

/// A line of the table of labels.
struct PackedEntry {
  std::string file;
  int64_t label;
};

/// Throws DataError with the line for anything but a table with labels below `num_classes`.
std::vector<PackedEntry> parse_packed_index(std::string_view text,
                                            const std::string& name,
                                            int64_t num_classes);

std::unique_ptr<ImageSet> open_packed(const std::filesystem::path& folder, Split split);

}  // namespace elliptical::data
