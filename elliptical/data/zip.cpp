// SPDX-License-Identifier: MIT
//
// Zip archives: a directory at the end lists members (name, method, sizes, checksum, place), each
// of which has a header of its own before its bytes. Members are stored or deflated. Encrypted
// ones, and the extensions for more than 4 GiB or 65,535 members (zip64), are refused.
#include <zlib.h>

#include <array>

#include "elliptical/data/archive_impl.h"

namespace elliptical::data {
namespace {

constexpr uint32_t kLocal = 0x04034b50, kCentral = 0x02014b50, kEnd = 0x06054b50;
constexpr size_t kLocalBytes = 30, kCentralBytes = 46, kEndBytes = 22, kMaxComment = 0xFFFF;
constexpr const char* kAdvice = " (unpack it and import the folder)";
constexpr const char* kDamaged = "must be a complete zip archive, is damaged";

/// A number of 2 or 4 bytes, the lowest first. The caller has seen that they are there.
uint32_t number(std::string_view bytes, size_t offset, size_t size) {
  uint32_t value = 0;
  for (size_t i = size; i-- > 0;) value = value << 8 | static_cast<uint8_t>(bytes[offset + i]);
  return value;
}
uint32_t number2(std::string_view bytes, size_t offset) { return number(bytes, offset, 2); }
uint32_t number4(std::string_view bytes, size_t offset) { return number(bytes, offset, 4); }

struct Member {
  std::string_view name, packed;
  uint32_t method, checksum, num_bytes;
};

/// Deflated bytes, unpacked piece by piece.
class Inflater {
 public:
  explicit Inflater(std::string_view packed) {
    if (inflateInit2(&stream_, -MAX_WBITS) != Z_OK) throw std::bad_alloc();  // no zlib header
    stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(packed.data()));
    stream_.avail_in = static_cast<uInt>(packed.size());
  }
  ~Inflater() { inflateEnd(&stream_); }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;

  /// The next piece; empty when there is no more, because of the end or of damage.
  std::string_view next() {
    if (status_ != Z_OK) return {};
    stream_.next_out = reinterpret_cast<Bytef*>(piece_.data());
    stream_.avail_out = static_cast<uInt>(piece_.size());
    status_ = inflate(&stream_, Z_NO_FLUSH);
    return {piece_.data(), piece_.size() - stream_.avail_out};
  }
  /// Whether the end was reached with the last byte.
  bool is_complete() const { return status_ == Z_STREAM_END && stream_.avail_in == 0; }

 private:
  z_stream stream_ = {};
  int status_ = Z_OK;
  std::array<char, 1 << 16> piece_;
};

void read_member(const Member& member, size_t index, const MemberChoice& choice) {
  choice.check_size(index, member.name, member.num_bytes);
  uint64_t num_bytes = 0;
  uLong checksum = crc32(0, nullptr, 0);
  const auto put = [&](std::string_view piece) {
    num_bytes += piece.size();
    if (num_bytes > member.num_bytes) {
      choice.fail(member.name, "must hold the " + std::to_string(member.num_bytes) +
                                   " bytes that it says it holds, holds more");
    }
    checksum = crc32(checksum, reinterpret_cast<const Bytef*>(piece.data()),
                     static_cast<uInt>(piece.size()));
    choice.put(index, piece);
  };
  bool is_complete = true;
  constexpr uint32_t kStored = 0, kDeflated = 8;
  if (member.method == kStored) {
    put(member.packed);
  } else if (member.method == kDeflated) {
    Inflater inflater(member.packed);
    for (auto piece = inflater.next(); !piece.empty(); piece = inflater.next()) put(piece);
    is_complete = inflater.is_complete();
  } else {
    choice.fail(member.name, "must be stored or deflated, has method " +
                                 std::to_string(member.method) + kAdvice);
  }
  if (!is_complete || num_bytes != member.num_bytes || checksum != member.checksum) {
    choice.fail(member.name, "must be complete, is damaged or cut");
  }
}

/// Where the directory ends; npos when there is none.
size_t find_end(std::string_view bytes) {
  if (bytes.size() < kEndBytes) return bytes.npos;
  const size_t last = bytes.size() - kEndBytes;
  for (size_t offset = last; last - offset <= kMaxComment; --offset) {
    if (number4(bytes, offset) == kEnd && number2(bytes, offset + 20) == last - offset) {
      return offset;
    }
    if (offset == 0) break;
  }
  return bytes.npos;
}

}  // namespace

void read_zip(std::string_view bytes, MemberChoice& choice) {
  const size_t end = find_end(bytes);
  if (end == bytes.npos) choice.fail(kDamaged);
  const uint32_t num_members = number2(bytes, end + 10);
  const uint64_t directory_bytes = number4(bytes, end + 12), directory = number4(bytes, end + 16);
  if (num_members == 0xFFFF || directory_bytes == 0xFFFFFFFF || directory == 0xFFFFFFFF) {
    choice.fail(std::string("must be a zip archive of less than 4 GiB, is zip64") + kAdvice);
  }
  if (directory + directory_bytes > end) choice.fail(kDamaged);

  std::string_view entries = bytes.substr(directory, directory_bytes);
  for (uint32_t i = 0; i < num_members; ++i) {
    if (entries.size() < kCentralBytes || number4(entries, 0) != kCentral) choice.fail(kDamaged);
    const size_t name_bytes = number2(entries, 28);
    const size_t entry_bytes =
        kCentralBytes + name_bytes + number2(entries, 30) + number2(entries, 32);
    if (entry_bytes > entries.size()) choice.fail(kDamaged);
    const std::string_view entry = entries.substr(0, entry_bytes);
    entries.remove_prefix(entry_bytes);
    const std::string_view name = entry.substr(kCentralBytes, name_bytes);
    if (name.ends_with('/')) continue;  // a folder
    const auto index = choice.take(name);
    if (!index) continue;

    constexpr uint32_t kUnix = 3, kTypeBits = 0170000, kRegular = 0100000;
    const uint32_t type = number4(entry, 38) >> 16 & kTypeBits;
    if (number2(entry, 4) >> 8 == kUnix && type != 0 && type != kRegular) {
      choice.fail(name, "must be a regular file, is a link or a device");
    }
    if ((number2(entry, 8) & 1) != 0) {
      choice.fail(name, std::string("must not be encrypted, is") + kAdvice);
    }
    // What stands before the bytes must be the same member, and the bytes before the directory.
    const uint64_t place = number4(entry, 42), packed_bytes = number4(entry, 20);
    if (place + kLocalBytes > directory || number4(bytes, place) != kLocal) {
      choice.fail(name, "must be complete, is damaged or cut");
    }
    const uint64_t local_name_bytes = number2(bytes, place + 26);
    const uint64_t start = place + kLocalBytes + local_name_bytes + number2(bytes, place + 28);
    if (start + packed_bytes > directory ||
        bytes.substr(place + kLocalBytes, local_name_bytes) != name) {
      choice.fail(name, "must be complete, is damaged or cut");
    }
    read_member({.name = name,
                 .packed = bytes.substr(start, packed_bytes),
                 .method = number2(entry, 10),
                 .checksum = number4(entry, 16),
                 .num_bytes = number4(entry, 24)},
                *index, choice);
  }
}

}  // namespace elliptical::data
