// SPDX-License-Identifier: MIT
#include "elliptical/data/image/codec.h"

#include <algorithm>
#include <array>

#include "elliptical/base/errors.h"
#include "elliptical/data/image/codec_impl.h"

namespace elliptical::data {
namespace {

constexpr std::array<uint8_t, 3> kJpeg = {0xFF, 0xD8, 0xFF};
constexpr std::array<uint8_t, 8> kPng = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1A, '\n'};

template <size_t N>
bool starts_with(std::span<const uint8_t> bytes, const std::array<uint8_t, N>& signature) {
  return bytes.size() >= N && std::equal(signature.begin(), signature.end(), bytes.begin());
}

/// The first bytes for a message: text where it is text, otherwise hexadecimal.
std::string beginning_of(std::span<const uint8_t> bytes) {
  const auto first = bytes.first(std::min<size_t>(bytes.size(), 12));
  const bool is_text =
      std::all_of(first.begin(), first.end(), [](uint8_t c) { return c >= ' ' && c <= '~'; });
  if (is_text) return "\"" + std::string(first.begin(), first.end()) + "\"";
  std::string text = "bytes";
  for (const uint8_t byte : first.first(std::min<size_t>(first.size(), 4))) {
    constexpr const char* kDigits = "0123456789abcdef";
    text += std::string(" ") + kDigits[byte >> 4] + kDigits[byte & 15];
  }
  return text;
}

}  // namespace

void check_size(int64_t width,
                int64_t height,
                const std::string& name,
                const DecodeLimits& limits) {
  const std::string size = std::to_string(width) + " x " + std::to_string(height);
  if (width < 1 || height < 1) throw DataError(name + ": must have pixels, says it is " + size);
  if (width > limits.max_side || height > limits.max_side || width * height > limits.max_pixels) {
    throw DataError(name + ": must have at most " + std::to_string(limits.max_pixels) +
                    " pixels and sides of " + std::to_string(limits.max_side) + ", says it is " +
                    size);
  }
}

Image decode_image(std::span<const uint8_t> bytes,
                   const std::string& name,
                   const DecodeLimits& limits) {
  if (starts_with(bytes, kJpeg)) return decode_jpeg(bytes, name, limits);
  if (starts_with(bytes, kPng)) return decode_png(bytes, name, limits);
  throw DataError(name + ": must be a JPEG or PNG picture, " +
                  (bytes.empty() ? "is empty" : "begins with " + beginning_of(bytes)));
}

}  // namespace elliptical::data
