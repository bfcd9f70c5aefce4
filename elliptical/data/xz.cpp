// SPDX-License-Identifier: MIT
#include "elliptical/data/xz.h"

#include <lzma.h>

#include <algorithm>

#include "elliptical/base/errors.h"
#include "elliptical/base/files.h"

namespace elliptical::data {
namespace {

namespace fs = std::filesystem;

fs::path packed_path(const fs::path& file) { return file.string() + ".xz"; }

/// What an xz decoder may need for its own tables; the largest preset takes 65 MiB.
constexpr uint64_t kDecoderBytes = uint64_t{256} << 20;

struct Stream {
  lzma_stream state = LZMA_STREAM_INIT;
  Stream() = default;
  ~Stream() { lzma_end(&state); }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
};

}  // namespace

std::string unpack_xz(std::string_view packed, const std::string& name, uint64_t max_bytes) {
  Stream stream;
  if (lzma_stream_decoder(&stream.state, kDecoderBytes, 0) != LZMA_OK) throw std::bad_alloc();
  stream.state.next_in = reinterpret_cast<const uint8_t*>(packed.data());
  stream.state.avail_in = packed.size();
  std::string result;
  lzma_ret status = LZMA_OK;
  while (status == LZMA_OK) {
    // Grows with what really comes, so that a lie about the size costs nothing, and no further than
    // a byte beyond the limit, which shows that there is more.
    const size_t done = result.size();
    result.resize(std::min<uint64_t>(std::max<uint64_t>(2 * done, 1 << 16), max_bytes + 1));
    stream.state.next_out = reinterpret_cast<uint8_t*>(result.data()) + done;
    stream.state.avail_out = result.size() - done;
    status = lzma_code(&stream.state, LZMA_FINISH);
    result.resize(result.size() - stream.state.avail_out);
    if (result.size() > max_bytes) {
      throw DataError(name + ": must hold at most " + std::to_string(max_bytes) +
                      " bytes, holds more");
    }
  }
  if (status != LZMA_STREAM_END || stream.state.avail_in != 0) {
    throw DataError(name + ": must be one complete xz stream, is damaged or cut at byte " +
                    std::to_string(packed.size() - stream.state.avail_in));
  }
  return result;
}

bool has_plain_or_xz(const fs::path& file) {
  return fs::exists(file) || fs::exists(packed_path(file));
}

std::string read_plain_or_xz(const fs::path& file, uint64_t max_bytes) {
  const fs::path packed = packed_path(file);
  if (fs::exists(file) || !fs::exists(packed)) return read_file(file, max_bytes);
  // What can not be packed grows by less than a part in a thousand.
  constexpr uint64_t kHeaderBytes = 1 << 16;
  const uint64_t max_packed = max_bytes + max_bytes / 1000 + kHeaderBytes;
  return unpack_xz(read_file(packed, max_packed), packed.string(), max_bytes);
}

}  // namespace elliptical::data
