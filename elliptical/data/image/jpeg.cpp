// SPDX-License-Identifier: MIT
//
// JPEG through libjpeg-turbo, with the exact transforms that Pillow uses too.
#include <turbojpeg.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <stdexcept>
#include <string_view>

#include "elliptical/base/errors.h"
#include "elliptical/data/image/codec_impl.h"

namespace elliptical::data {
namespace {

/// What TurboJPEG's own limit is; encoders write ten or so.
constexpr int64_t kMaxScans = 500;

struct Destroy {
  void operator()(void* handle) const { tjDestroy(handle); }
};
using Handle = std::unique_ptr<void, Destroy>;

Handle make_handle(tjhandle handle) {
  if (handle == nullptr) throw std::bad_alloc();
  return Handle(handle);
}

/// False when the last call merely complained of bytes between segments or of an odd header, which
/// many pictures of ImageNet have, and every pixel is there. The error code does not tell: after a
/// first warning, fatal errors are called warnings too.
bool has_failed(const Handle& handle) {
  const std::string_view message = tjGetErrorStr2(handle.get());
  const auto says = [message](const char* words) { return message.find(words) != message.npos; };
  return !says("extraneous bytes") && !says("unknown JFIF revision") &&
         !says("Unknown Adobe color transform") && !says("Invalid SOS parameters for sequential");
}

[[noreturn]] void fail(const std::string& name, const Handle& handle) {
  throw DataError(name +
                  ": must be a complete JPEG picture, is not: " + tjGetErrorStr2(handle.get()));
}

/// How many passes over its pixels a file asks for: its SOS markers. Other markers come with their
/// length, so that what looks like one inside of them is passed over; within the bits of a scan, FF
/// is followed by 0 or by the number of a restart.
int64_t count_scans(std::span<const uint8_t> bytes) {
  constexpr uint8_t kStartOfScan = 0xDA, kEnd = 0xD9;
  int64_t num_scans = 0;
  for (size_t i = 2; i + 1 < bytes.size();) {
    const uint8_t marker = bytes[i + 1];
    const bool is_marker = bytes[i] == 0xFF && marker != 0xFF && marker > 0x01;
    if (!is_marker || (marker >= 0xD0 && marker <= 0xD8)) {
      ++i;
      continue;
    }
    if (marker == kEnd) break;
    num_scans += marker == kStartOfScan ? 1 : 0;
    if (i + 3 >= bytes.size()) break;
    i += 2 + std::max<size_t>(2, size_t{bytes[i + 2]} << 8 | bytes[i + 3]);
  }
  return num_scans;
}

/// A progressive picture can ask for any number of passes over all its pixels, a few bytes each.
void check_scans(std::span<const uint8_t> bytes,
                 int64_t num_pixels,
                 const std::string& name,
                 const DecodeLimits& limits) {
  const int64_t num_scans = count_scans(bytes);
  const int64_t max_scans = std::min(kMaxScans, limits.max_passes * limits.max_pixels / num_pixels);
  if (num_scans <= max_scans) return;
  throw DataError(name + ": must have at most " + std::to_string(max_scans) + " scans of " +
                  std::to_string(num_pixels) + " pixels, has " + std::to_string(num_scans));
}

/// Inks as Adobe stores them (255 is none) to light, rounded as Pillow rounds.
Image from_cmyk(const std::vector<uint8_t>& inks, int64_t width, int64_t height) {
  Image image(width, height);
  for (size_t i = 0; i < inks.size() / 4; ++i) {
    const int black = inks[4 * i + 3];
    for (size_t channel = 0; channel < 3; ++channel) {
      const int product = (255 - inks[4 * i + channel]) * black + 128;
      image.pixels[3 * i + channel] =
          static_cast<uint8_t>(black - (((product >> 8) + product) >> 8));
    }
  }
  return image;
}

}  // namespace

Image decode_jpeg(std::span<const uint8_t> bytes,
                  const std::string& name,
                  const DecodeLimits& limits) {
  if (bytes.size() > std::numeric_limits<int32_t>::max()) {
    throw DataError(name + ": must be shorter than 2 GiB");
  }
  const Handle handle = make_handle(tjInitDecompress());
  int width = 0, height = 0, subsampling = 0, colours = 0;
  if (tjDecompressHeader3(handle.get(), bytes.data(), bytes.size(), &width, &height, &subsampling,
                          &colours) != 0 &&
      has_failed(handle)) {
    fail(name, handle);
  }
  check_size(width, height, name, limits);
  check_scans(bytes, int64_t{width} * height, name, limits);
  const bool is_cmyk = colours == TJCS_CMYK || colours == TJCS_YCCK;
  const int format = is_cmyk ? TJPF_CMYK : TJPF_RGB;
  std::vector<uint8_t> pixels(static_cast<size_t>(width) * height * tjPixelSize[format]);
  constexpr int kFlags = TJFLAG_LIMITSCANS | TJFLAG_ACCURATEDCT;
  if (tjDecompress2(handle.get(), bytes.data(), bytes.size(), pixels.data(), width, 0, height,
                    format, kFlags) != 0 &&
      has_failed(handle)) {
    fail(name, handle);
  }
  Image image;
  if (is_cmyk) {
    image = from_cmyk(pixels, width, height);
  } else {
    image.width = width;
    image.height = height;
    image.pixels = std::move(pixels);
  }
  return oriented(std::move(image), jpeg_orientation(bytes));
}

std::vector<uint8_t> encode_jpeg(const Image& image, int quality) {
  if (quality < 1 || quality > 100) {
    throw std::invalid_argument("encode_jpeg: quality must be 1 to 100, got " +
                                std::to_string(quality));
  }
  if (image.width < 1 || image.height < 1 || std::max(image.width, image.height) > 65'500) {
    throw std::invalid_argument("encode_jpeg: sides must be 1 to 65500, got " +
                                std::to_string(image.width) + " x " + std::to_string(image.height));
  }
  const Handle handle = make_handle(tjInitCompress());
  const auto width = static_cast<int>(image.width), height = static_cast<int>(image.height);
  std::vector<uint8_t> bytes(tjBufSize(width, height, TJSAMP_420));
  uint8_t* to = bytes.data();
  unsigned long size = bytes.size();  // NOLINT(google-runtime-int): what TurboJPEG takes
  if (tjCompress2(handle.get(), image.pixels.data(), width, 0, height, TJPF_RGB, &to, &size,
                  TJSAMP_420, quality, TJFLAG_NOREALLOC | TJFLAG_ACCURATEDCT) != 0) {
    throw std::runtime_error(std::string("encode_jpeg: ") + tjGetErrorStr2(handle.get()));
  }
  bytes.resize(size);
  return bytes;
}

}  // namespace elliptical::data
