// SPDX-License-Identifier: MIT
#include "elliptical/base/sha256.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <system_error>
#include <vector>

#include "elliptical/base/errors.h"

namespace elliptical {
namespace {

/// FIPS 180-4, 4.2.2: the first 32 bits of the fractional parts of the cube roots of the first 64
/// primes.
constexpr std::array<uint32_t, 64> kRound = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

uint32_t load_big_endian(const std::byte* bytes) {
  uint32_t word;
  std::memcpy(&word, bytes, sizeof word);
  return __builtin_bswap32(word);
}

}  // namespace

Sha256::Sha256()
    : state_{0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
             0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19} {}

void Sha256::compress(const std::byte* block) {
  std::array<uint32_t, 64> w;
  for (int t = 0; t < 16; ++t) w[t] = load_big_endian(block + 4 * t);
  for (int t = 16; t < 64; ++t) {
    const uint32_t s0 = std::rotr(w[t - 15], 7) ^ std::rotr(w[t - 15], 18) ^ (w[t - 15] >> 3);
    const uint32_t s1 = std::rotr(w[t - 2], 17) ^ std::rotr(w[t - 2], 19) ^ (w[t - 2] >> 10);
    w[t] = w[t - 16] + s0 + w[t - 7] + s1;
  }
  auto [a, b, c, d, e, f, g, h] = state_;
  for (int t = 0; t < 64; ++t) {
    const uint32_t s1 = std::rotr(e, 6) ^ std::rotr(e, 11) ^ std::rotr(e, 25);
    const uint32_t t1 = h + s1 + ((e & f) ^ (~e & g)) + kRound[t] + w[t];
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
  for (int i = 0; i < 8; ++i) state_[i] += sum[i];
}

void Sha256::update(std::span<const std::byte> bytes) {
  const size_t held = length_ % buffer_.size();
  length_ += bytes.size();
  if (held != 0) {
    const size_t count = std::min(bytes.size(), buffer_.size() - held);
    std::copy_n(bytes.data(), count, buffer_.data() + held);
    bytes = bytes.subspan(count);
    if (held + count < buffer_.size()) return;
    compress(buffer_.data());
  }
  for (; bytes.size() >= buffer_.size(); bytes = bytes.subspan(buffer_.size())) {
    compress(bytes.data());
  }
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
  const auto fail = [&](const char* action) {
    throw DataError(path.string() + ": can not " + action + ": " +
                    std::generic_category().message(errno));
  };
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0) fail("open");
  struct Closer {
    int descriptor;
    ~Closer() { ::close(descriptor); }
  } const closer{descriptor};
  Sha256 hash;
  std::vector<std::byte> buffer(size_t{1} << 20);
  while (true) {
    const ssize_t count = ::read(descriptor, buffer.data(), buffer.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) fail("read");
    if (count == 0) return hash.hex();
    hash.update(std::span(buffer).first(static_cast<size_t>(count)));
  }
}

}  // namespace elliptical
