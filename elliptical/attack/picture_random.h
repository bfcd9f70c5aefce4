// SPDX-License-Identifier: MIT
//
// Random numbers of pictures: each picture has a key of its own and draws from that key alone, so
// what an attack does to a picture depends neither on the other pictures of its batch nor on
// threads.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string_view>
#include <vector>

#include "elliptical/base/random.h"

namespace elliptical::attack {

/// One key a picture.
using PictureKeys = std::vector<RandomKey>;

/// Keys of the pictures with these numbers in a data set; of number first, first + 1, ...
PictureKeys picture_keys(RandomKey key, const std::vector<int64_t>& numbers);
PictureKeys picture_keys(RandomKey key, int64_t first, int64_t count);

/// The key of a named purpose, or of sub-purpose number `index`, for each picture.
PictureKeys derive(const PictureKeys& keys, std::string_view purpose);
PictureKeys derive(const PictureKeys& keys, uint64_t index);

/// `indices` (n) int64.
PictureKeys select(const PictureKeys& keys, const at::Tensor& indices);

/// (B, shape...) with numbers uniform in [-1, 1), or signs -1 and 1 with equal chance; B keys.
at::Tensor draw_uniform(const PictureKeys& keys, at::IntArrayRef shape, at::ScalarType dtype);
at::Tensor draw_signs(const PictureKeys& keys, at::IntArrayRef shape, at::ScalarType dtype);

}  // namespace elliptical::attack
