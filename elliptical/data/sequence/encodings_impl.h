// SPDX-License-Identifier: MIT
//
// What the kinds of sets share: names of classes, ids of bytes and pixels, examples of a form.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "elliptical/data/sequence/sequence_set.h"

namespace elliptical::data {

/// "0" to "9".
std::vector<std::string> digit_names();

/// An expression with its facts. DataError with `where` when it is longer than `max_length`.
SequenceExample listops_example(std::vector<int32_t> tokens,
                                int64_t label,
                                int64_t max_length,
                                const std::string& where);

/// Id b + 1 for byte b; 0 is padding. 257 ids.
std::vector<std::string> byte_vocabulary();

/// DataError "WHERE: what must hold" unless `text` may be a document: not empty, no NUL byte, and,
/// where that is refused, not longer than `max_length`.
void check_document(std::string_view text,
                    int64_t max_length,
                    bool refuse_longer,
                    const std::string& where);

/// The ids of its first max_length bytes.
std::vector<int32_t> byte_ids(std::string_view text, int64_t max_length);

/// 257 ids when they are shifted, 256 when they are raw.
std::vector<std::string> pixel_vocabulary(PixelIds pixel_ids);

/// Of grey values.
std::vector<int32_t> to_pixel_ids(const std::vector<uint8_t>& values, PixelIds pixel_ids);

}  // namespace elliptical::data
