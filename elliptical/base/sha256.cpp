// SPDX-License-Identifier: MIT
#include "elliptical/base/sha256.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "elliptical/base/lines.h"
#include "elliptical/base/sha256_impl.h"

namespace elliptical {
namespace {

uint32_t load_big_endian(const std::byte* bytes) {
  uint32_t word;
  std::memcpy(&word, bytes, sizeof word);
  return __builtin_bswap32(word);
}

void compress_block(std::array<uint32_t, 8>& state, const std::byte* block) {
  std::array<uint32_t, 64> w;
  for (int t = 0; t < 16; ++t) w[t] = load_big_endian(block + 4 * t);
  for (int t = 16; t < 64; ++t) {
    const uint32_t s0 = std::rotr(w[t - 15], 7) ^ std::rotr(w[t - 15], 18) ^ (w[t - 15] >> 3);
    const uint32_t s1 = std::rotr(w[t - 2], 17) ^ std::rotr(w[t - 2], 19) ^ (w[t - 2] >> 10);
    w[t] = w[t - 16] + s0 + w[t - 7] + s1;
  }
  auto [a, b, c, d, e, f, g, h] = state;
  for (int t = 0; t < 64; ++t) {
    const uint32_t s1 = std::rotr(e, 6) ^ std::rotr(e, 11) ^ std::rotr(e, 25);
    const uint32_t t1 = h + s1 + ((e & f) ^ (~e & g)) + kSha256Rounds[t] + w[t];
    const uint32_t s0 = std::rotr(a, 2) ^ std::rotr(a, 13) ^ std::rotr(a, 22);
    const uint32_t t2 = s0 + ((a & b) ^ (a & c) ^ (b & c));
    h = g;
    g = f;
    f = e;
    e = d + t1;
    d = c;
    c = b;
    b = a;
    a = t1 + t2;
  }
  const std::array<uint32_t, 8> sum = {a, b, c, d, e, f, g, h};
  for (int i = 0; i < 8; ++i) state[i] += sum[i];
}

/// Chosen once: the instructions of the CPU where it has them.
void compress(std::array<uint32_t, 8>& state, const std::byte* blocks, size_t count) {
  static const auto chosen = sha256_x86_available() ? sha256_compress_x86 : sha256_compress_plain;
  chosen(state, blocks, count);
}

}  // namespace

void sha256_compress_plain(std::array<uint32_t, 8>& state, const std::byte* blocks, size_t count) {
  for (size_t i = 0; i < count; ++i) compress_block(state, blocks + 64 * i);
}

Sha256::Sha256()
    : state_{0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
             0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19} {}

void Sha256::update(std::span<const std::byte> bytes) {
  const size_t held = length_ % buffer_.size();
  length_ += bytes.size();
  if (held != 0) {
    const size_t count = std::min(bytes.size(), buffer_.size() - held);
    std::copy_n(bytes.data(), count, buffer_.data() + held);
    bytes = bytes.subspan(count);
    if (held + count < buffer_.size()) return;
    compress(state_, buffer_.data(), 1);
  }
  const size_t num_blocks = bytes.size() / buffer_.size();
  compress(state_, bytes.data(), num_blocks);
  bytes = bytes.subspan(num_blocks * buffer_.size());
  std::copy(bytes.begin(), bytes.end(), buffer_.begin());
}

std::string Sha256::hex() {
  const uint64_t num_bits = length_ * 8;
  // One bit 1, zeros up to 8 bytes before the end of a block, the number of bits.
  std::array<std::byte, 72> padding{std::byte{0x80}};
  const size_t held = length_ % 64;
  const size_t zeros_end = held < 56 ? 56 - held : 120 - held;
  for (int i = 0; i < 8; ++i) {
    padding[zeros_end + i] = static_cast<std::byte>(num_bits >> (56 - 8 * i));
  }
  update(std::span(padding).first(zeros_end + 8));

  std::string text;
  for (const uint32_t word : state_) {
    for (int shift = 28; shift >= 0; shift -= 4) text += "0123456789abcdef"[(word >> shift) & 15u];
  }
  return text;
}

std::string sha256_hex(std::string_view text) {
  Sha256 hash;
  hash.update(text);
  return hash.hex();
}

std::string sha256_of_file(const std::filesystem::path& path) {
  Sha256 hash;
  read_pieces(path, [&](std::string_view piece) { hash.update(piece); });
  return hash.hex();
}

}  // namespace elliptical
