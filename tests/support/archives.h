// SPDX-License-Identifier: MIT
//
// Small archives for tests, with whatever is wrong with them. Members of zip archives are stored or
// given as they are packed.
#pragma once

#include <lzma.h>
#include <zlib.h>

#include <string>
#include <vector>

namespace elliptical::test {

struct ZipMember {
  std::string name, packed;
  uint32_t method = 0, num_bytes = static_cast<uint32_t>(packed.size());
  uint32_t checksum = static_cast<uint32_t>(
      crc32(0, reinterpret_cast<const Bytef*>(packed.data()), static_cast<uInt>(packed.size())));
  uint32_t mode = 0100644, flags = 0;
  std::string local_name = name;
};

inline std::string little(uint64_t value, size_t size) {
  std::string bytes;
  for (size_t i = 0; i < size; ++i) bytes += static_cast<char>(value >> 8 * i);
  return bytes;
}

inline std::string make_zip(const std::vector<ZipMember>& members,
                            const std::string& comment = "",
                            uint32_t num_members = 0) {
  std::string bytes, directory;
  for (const ZipMember& member : members) {
    const std::string sizes =
        little(member.checksum, 4) + little(member.packed.size(), 4) + little(member.num_bytes, 4);
    const std::string kind = little(member.flags, 2) + little(member.method, 2) + little(0, 4);
    directory += "PK\1\2" + little(3 << 8 | 20, 2) + little(20, 2) + kind + sizes +
                 little(member.name.size(), 2) + little(0, 8) + little(member.mode << 16, 4) +
                 little(bytes.size(), 4) + member.name;
    bytes += "PK\3\4" + little(20, 2) + kind + sizes + little(member.local_name.size(), 2) +
             little(0, 2) + member.local_name + member.packed;
  }
  const size_t count = num_members != 0 ? num_members : members.size();
  const std::string end = "PK\5\6" + little(0, 4) + little(count, 2) + little(count, 2) +
                          little(directory.size(), 4) + little(bytes.size(), 4) +
                          little(comment.size(), 2) + comment;
  return bytes + directory + end;
}

/// `format_bits` of zlib: -15 deflate alone, as in zip; 31 gzip.
inline std::string deflated(const std::string& text, int format_bits = -15) {
  z_stream stream = {};
  deflateInit2(&stream, 9, Z_DEFLATED, format_bits, 8, Z_DEFAULT_STRATEGY);
  std::string packed(deflateBound(&stream, text.size()) + 64, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  deflate(&stream, Z_FINISH);
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  return packed;
}

inline std::string xz_packed(const std::string& text) {
  std::string packed(lzma_stream_buffer_bound(text.size()), '\0');
  size_t size = 0;
  lzma_easy_buffer_encode(6, LZMA_CHECK_CRC64, nullptr,
                          reinterpret_cast<const uint8_t*>(text.data()), text.size(),
                          reinterpret_cast<uint8_t*>(packed.data()), &size, packed.size());
  packed.resize(size);
  return packed;
}

inline ZipMember deflated_member(const std::string& name, const std::string& text) {
  ZipMember stored{.name = name, .packed = text};
  return {.name = name,
          .packed = deflated(text),
          .method = 8,
          .num_bytes = stored.num_bytes,
          .checksum = stored.checksum};
}

/// A header with its checksum, the bytes, and what fills the last block. `size`: what it claims.
inline std::string tar_member(const std::string& name,
                              const std::string& bytes,
                              char type = '0',
                              int64_t size = -1) {
  std::string header(512, '\0');
  const auto put = [&](size_t offset, const std::string& text) {
    header.replace(offset, text.size(), text);
  };
  char octal[12];
  const auto digits = [&](int width, uint64_t value) {
    snprintf(octal, sizeof octal, "%0*lo", width, static_cast<unsigned long>(value));
    return std::string(octal);
  };
  put(0, name.substr(0, 100));
  put(100, "0000644");
  put(124, digits(11, size >= 0 ? static_cast<uint64_t>(size) : bytes.size()));
  put(148, "        ");
  put(156, std::string(1, type));
  put(257, std::string("ustar\00000", 8));
  uint64_t sum = 0;
  for (const char c : header) sum += static_cast<uint8_t>(c);
  put(148, digits(6, sum) + std::string("\0 ", 2));
  return header + bytes + std::string((512 - bytes.size() % 512) % 512, '\0');
}

inline const std::string kTarEnd(1024, '\0');

}  // namespace elliptical::test
