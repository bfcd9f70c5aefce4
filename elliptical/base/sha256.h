// SPDX-License-Identifier: MIT
//
// SHA-256 (FIPS 180-4): checksums of checkpoints and data.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

namespace elliptical {

class Sha256 {
 public:
  Sha256();
  void update(std::span<const std::byte> bytes);
  void update(std::string_view text) { update(std::as_bytes(std::span(text))); }
  /// 64 lower-case hexadecimal digits; the object is done afterwards.
  std::string hex();

 private:
  std::array<uint32_t, 8> state_;
  std::array<std::byte, 64> buffer_;
  uint64_t length_ = 0;
};

std::string sha256_hex(std::string_view text);
std::string sha256_of_file(const std::filesystem::path& path);

}  // namespace elliptical
