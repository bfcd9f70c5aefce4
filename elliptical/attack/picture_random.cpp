// SPDX-License-Identifier: MIT
#include "elliptical/attack/picture_random.h"

#include <torch/torch.h>

#include <algorithm>
#include <numeric>

namespace elliptical::attack {
namespace {

template <class Derive>
PictureKeys mapped(const PictureKeys& keys, const Derive& derive_one) {
  PictureKeys result;
  result.reserve(keys.size());
  for (const RandomKey key : keys) result.push_back(derive_one(key));
  return result;
}

/// A tensor (B, shape...) whose rows `fill(stream, first, last)` fills, one stream a picture.
template <class Fill>
at::Tensor filled(const PictureKeys& keys,
                  at::IntArrayRef shape,
                  at::ScalarType dtype,
                  const Fill& fill) {
  std::vector<int64_t> sizes = {static_cast<int64_t>(keys.size())};
  sizes.insert(sizes.end(), shape.begin(), shape.end());
  at::Tensor result = at::empty(sizes, dtype);
  if (result.numel() == 0) return result;
  const int64_t row = result.stride(0);
  AT_DISPATCH_FLOATING_TYPES(dtype, "draw", [&] {
    scalar_t* out = result.data_ptr<scalar_t>();
    for (const RandomKey key : keys) {
      RandomStream stream(key);
      fill(stream, out, out + row);
      out += row;
    }
  });
  return result;
}

}  // namespace

PictureKeys picture_keys(RandomKey key, const std::vector<int64_t>& numbers) {
  PictureKeys keys;
  keys.reserve(numbers.size());
  for (const int64_t number : numbers) keys.push_back(key.derive(static_cast<uint64_t>(number)));
  return keys;
}

PictureKeys picture_keys(RandomKey key, int64_t first, int64_t count) {
  std::vector<int64_t> numbers(static_cast<size_t>(count));
  std::iota(numbers.begin(), numbers.end(), first);
  return picture_keys(key, numbers);
}

PictureKeys derive(const PictureKeys& keys, std::string_view purpose) {
  return mapped(keys, [&](RandomKey key) { return key.derive(purpose); });
}

PictureKeys derive(const PictureKeys& keys, uint64_t index) {
  return mapped(keys, [&](RandomKey key) { return key.derive(index); });
}

PictureKeys select(const PictureKeys& keys, const at::Tensor& indices) {
  PictureKeys result;
  result.reserve(static_cast<size_t>(indices.numel()));
  const at::Tensor positions = indices.contiguous();
  for (int64_t i = 0; i < positions.numel(); ++i) {
    result.push_back(keys.at(static_cast<size_t>(positions.const_data_ptr<int64_t>()[i])));
  }
  return result;
}

at::Tensor draw_uniform(const PictureKeys& keys, at::IntArrayRef shape, at::ScalarType dtype) {
  return filled(keys, shape, dtype, [](RandomStream& stream, auto* first, auto* last) {
    // 23 bits: exact in float, so that rounding never makes it 1.
    std::generate(first, last,
                  [&] { return static_cast<float>(stream.next() >> 41) * 0x1.0p-22f - 1.0f; });
  });
}

at::Tensor draw_signs(const PictureKeys& keys, at::IntArrayRef shape, at::ScalarType dtype) {
  return filled(keys, shape, dtype, [](RandomStream& stream, auto* first, auto* last) {
    uint64_t bits = 0;
    for (int64_t i = 0; first != last; ++i, ++first, bits >>= 1) {
      if (i % 64 == 0) bits = stream.next();
      *first = static_cast<float>(bits & 1) * 2.0f - 1.0f;
    }
  });
}

}  // namespace elliptical::attack
