// SPDX-License-Identifier: MIT
//
// PNG through libpng. Its errors are long jumps, which must not cross a frame that has something to
// destroy: each function that sets a jump is plain C, and what needs memory is made outside of it.
#include <png.h>

#include <algorithm>
#include <cstring>
#include <stdexcept>

#include "elliptical/base/errors.h"
#include "elliptical/data/image/codec_impl.h"

namespace elliptical::data {
namespace {

constexpr size_t kMessageBytes = 200;
constexpr const char* kTooShort = "the file ends too early";

/// A libpng reader over bytes in memory.
class Reader {
 public:
  explicit Reader(std::span<const uint8_t> bytes) : rest_(bytes) {
    png_ = png_create_read_struct(PNG_LIBPNG_VER_STRING, this, on_error, on_warning);
    if (png_ != nullptr) info_ = png_create_info_struct(png_);
    if (info_ == nullptr) {
      png_destroy_read_struct(&png_, nullptr, nullptr);
      throw std::bad_alloc();
    }
    png_set_read_fn(png_, this, on_read);
  }
  ~Reader() { png_destroy_read_struct(&png_, &info_, nullptr); }
  Reader(const Reader&) = delete;
  Reader& operator=(const Reader&) = delete;

  /// Reads up to the pixels. False: see message().
  bool read_header() {
    if (setjmp(png_jmpbuf(png_)) != 0) return false;
    // Text and profiles are packed and may hold a thousand times their bytes each: passed over,
    // with every other chunk that pixels do not depend on, but for the orientation.
    png_set_keep_unknown_chunks(png_, PNG_HANDLE_CHUNK_NEVER, nullptr, -1);
    png_set_keep_unknown_chunks(png_, PNG_HANDLE_CHUNK_AS_DEFAULT,
                                reinterpret_cast<png_const_bytep>("eXIf"), 1);
    // Sizes are ours to check, with a message; these only bound what libpng takes by itself.
    const auto max_side = static_cast<png_uint_32>(PNG_UINT_31_MAX);
    png_set_user_limits(png_, max_side, max_side);
    png_set_chunk_malloc_max(png_, 8'000'000);
    png_set_chunk_cache_max(png_, 128);
    png_read_info(png_, info_);
    return true;
  }

  int64_t width() const { return png_get_image_width(png_, info_); }
  int64_t height() const { return png_get_image_height(png_, info_); }

  /// Reads the pixels as RGB of 8 bits, and the rest of the file. False: see message().
  bool read_pixels(uint8_t** rows) {
    if (setjmp(png_jmpbuf(png_)) != 0) return false;
    png_set_strip_16(png_);
    png_set_palette_to_rgb(png_);
    png_set_expand_gray_1_2_4_to_8(png_);
    png_set_gray_to_rgb(png_);
    png_set_strip_alpha(png_);
    png_set_interlace_handling(png_);
    png_read_update_info(png_, info_);
    if (png_get_rowbytes(png_, info_) != 3 * static_cast<size_t>(width())) {
      png_error(png_, "unexpected layout of pixels");
    }
    png_read_image(png_, rows);
    png_read_end(png_, info_);
    return true;
  }

  int orientation() {
    png_bytep exif = nullptr;
    png_uint_32 size = 0;
    if (png_get_eXIf_1(png_, info_, &size, &exif) == 0) return 1;
    return tiff_orientation({exif, size});
  }

  const char* message() const { return message_; }

 private:
  static Reader& self(png_structp png) { return *static_cast<Reader*>(png_get_error_ptr(png)); }

  [[noreturn]] static void on_error(png_structp png, png_const_charp message) {
    char* to = self(png).message_;
    std::strncpy(to, message, kMessageBytes - 1);
    png_longjmp(png, 1);
  }
  static void on_warning(png_structp /*png*/, png_const_charp /*message*/) {}
  static void on_read(png_structp png, png_bytep to, size_t size) {
    Reader& reader = *static_cast<Reader*>(png_get_io_ptr(png));
    if (size > reader.rest_.size()) png_error(png, kTooShort);
    std::copy_n(reader.rest_.begin(), size, to);
    reader.rest_ = reader.rest_.subspan(size);
  }

  std::span<const uint8_t> rest_;
  png_structp png_ = nullptr;
  png_infop info_ = nullptr;
  char message_[kMessageBytes] = {};
};

[[noreturn]] void fail(const std::string& name, const std::string& message) {
  throw DataError(name + ": must be a complete PNG picture, is not: " + message);
}

/// Throws unless every chunk (length, type, contents, checksum) ends within the file: libpng takes
/// memory for some of them by what they claim.
void check_chunks(std::span<const uint8_t> bytes, const std::string& name) {
  constexpr size_t kSignature = 8, kAround = 12;
  for (size_t offset = kSignature; offset < bytes.size();) {
    const auto rest = bytes.subspan(offset);
    size_t length = 0;
    for (size_t i = 0; i < 4 && i < rest.size(); ++i) length = length << 8 | rest[i];
    if (rest.size() < kAround || length > rest.size() - kAround) fail(name, kTooShort);
    const bool is_end = std::equal(rest.begin() + 4, rest.begin() + 8, "IEND");
    if (is_end) return;  // what follows is none of our business
    offset += kAround + length;
  }
}

}  // namespace

Image decode_png(std::span<const uint8_t> bytes,
                 const std::string& name,
                 const DecodeLimits& limits) {
  check_chunks(bytes, name);
  Reader reader(bytes);
  if (!reader.read_header()) fail(name, reader.message());
  check_size(reader.width(), reader.height(), name, limits);
  Image image(reader.width(), reader.height());
  std::vector<uint8_t*> rows(image.height);
  for (int64_t y = 0; y < image.height; ++y) rows[y] = image.at(y, 0);
  if (!reader.read_pixels(rows.data())) fail(name, reader.message());
  return oriented(std::move(image), reader.orientation());
}

std::vector<uint8_t> encode_png(const Image& image) {
  if (image.pixels.empty()) throw std::invalid_argument("encode_png: the picture is empty");
  png_image header = {};
  header.version = PNG_IMAGE_VERSION;
  header.width = static_cast<png_uint_32>(image.width);
  header.height = static_cast<png_uint_32>(image.height);
  header.format = PNG_FORMAT_RGB;
  png_alloc_size_t size = PNG_IMAGE_PNG_SIZE_MAX(header);
  std::vector<uint8_t> bytes(size);
  if (png_image_write_to_memory(&header, bytes.data(), &size, 0, image.pixels.data(), 0, nullptr) ==
      0) {
    throw std::invalid_argument(std::string("encode_png: ") + header.message);
  }
  bytes.resize(size);
  return bytes;
}

}  // namespace elliptical::data
