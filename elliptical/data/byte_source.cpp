// SPDX-License-Identifier: MIT
//
// Bytes as they are, out of gzip, and out of xz.
#include <lzma.h>
#include <zlib.h>

#include <algorithm>
#include <limits>

#include "elliptical/base/errors.h"
#include "elliptical/data/archive_impl.h"

namespace elliptical::data {
namespace {

using namespace std::string_view_literals;

class PlainSource : public ByteSource {
 public:
  explicit PlainSource(std::string_view bytes) : rest_(bytes) {}
  size_t read(std::span<char> to) override {
    const size_t count = std::min(to.size(), rest_.size());
    std::copy_n(rest_.begin(), count, to.begin());
    rest_.remove_prefix(count);
    return count;
  }

 private:
  std::string_view rest_;
};

[[noreturn]] void fail(const std::string& name, const char* format) {
  throw DataError(name + ": must be a complete " + format + " file, is damaged or cut");
}

/// One or more members one after the other, then perhaps zeros: what gzip itself reads.
class GzipSource : public ByteSource {
 public:
  GzipSource(std::string_view bytes, const std::string& name) : rest_(bytes), name_(name) {
    constexpr int kGzip = 16;
    if (inflateInit2(&stream_, MAX_WBITS + kGzip) != Z_OK) throw std::bad_alloc();
  }
  ~GzipSource() override { inflateEnd(&stream_); }

  size_t read(std::span<char> to) override {
    while (true) {
      if (is_between_) {
        if (rest_.find_first_not_of('\0') == rest_.npos) return 0;
        inflateReset(&stream_);
        is_between_ = false;
      }
      stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(rest_.data()));
      stream_.avail_in = clamped(rest_.size());
      stream_.next_out = reinterpret_cast<Bytef*>(to.data());
      stream_.avail_out = clamped(to.size());
      const uInt given = stream_.avail_in, room = stream_.avail_out;
      const int status = inflate(&stream_, Z_NO_FLUSH);
      rest_.remove_prefix(given - stream_.avail_in);
      const size_t count = room - stream_.avail_out;
      is_between_ = status == Z_STREAM_END;
      const bool is_stuck = status == Z_OK && count == 0 && given == stream_.avail_in;
      if ((status != Z_OK && !is_between_) || is_stuck) fail(name_, "gzip");
      if (count > 0) return count;
    }
  }

 private:
  static uInt clamped(size_t size) {
    return static_cast<uInt>(std::min<size_t>(size, std::numeric_limits<int32_t>::max()));
  }

  std::string_view rest_;
  const std::string& name_;
  z_stream stream_ = {};
  bool is_between_ = false;
};

class XzSource : public ByteSource {
 public:
  XzSource(std::string_view bytes, const std::string& name) : name_(name) {
    constexpr uint64_t kDecoderBytes = uint64_t{256} << 20;  // the largest preset takes 65 MiB
    if (lzma_stream_decoder(&stream_, kDecoderBytes, LZMA_CONCATENATED) != LZMA_OK) {
      throw std::bad_alloc();
    }
    stream_.next_in = reinterpret_cast<const uint8_t*>(bytes.data());
    stream_.avail_in = bytes.size();
  }
  ~XzSource() override { lzma_end(&stream_); }

  size_t read(std::span<char> to) override {
    stream_.next_out = reinterpret_cast<uint8_t*>(to.data());
    stream_.avail_out = to.size();
    while (!is_done_ && stream_.avail_out == to.size()) {
      const lzma_ret status = lzma_code(&stream_, LZMA_FINISH);
      is_done_ = status == LZMA_STREAM_END;
      if (status != LZMA_OK && !is_done_) fail(name_, "xz");
    }
    return to.size() - stream_.avail_out;
  }

 private:
  const std::string& name_;
  lzma_stream stream_ = LZMA_STREAM_INIT;
  bool is_done_ = false;
};

}  // namespace

std::unique_ptr<ByteSource> open_bytes(std::string_view bytes, const std::string& name) {
  if (bytes.starts_with("\x1F\x8B")) return std::make_unique<GzipSource>(bytes, name);
  if (bytes.starts_with("\xFD"
                        "7zXZ\0"sv))
    return std::make_unique<XzSource>(bytes, name);
  return std::make_unique<PlainSource>(bytes);
}

}  // namespace elliptical::data
