// SPDX-License-Identifier: MIT
//
// Tar archives: blocks of 512 bytes, a header and then the bytes of the member, filled up with
// zeros. Long names come in members of their own before the one they belong to, as GNU tar (type L)
// and POSIX (type x: lines "LENGTH KEY=VALUE") write them. The archive is read to its end, so that
// the checksum of what packs it is checked.
#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

#include "elliptical/data/archive_impl.h"

namespace elliptical::data {
namespace {

constexpr size_t kBlock = 512;
/// What members that nobody asked for may have together.
constexpr uint64_t kMaxOtherBytes = uint64_t{256} << 20;
/// Of a name or the lines of type x.
constexpr uint64_t kMaxExtraBytes = 1 << 16;

using Block = std::array<char, kBlock>;

std::string_view field(const Block& header, size_t offset, size_t size) {
  const std::string_view whole(header.data() + offset, size);
  return whole.substr(0, whole.find('\0'));
}

/// Octal digits, perhaps between blanks, or after a first byte of 128 the lowest bytes of the
/// field.
std::optional<uint64_t> number(const Block& header, size_t offset, size_t size) {
  const std::string_view whole(header.data() + offset, size);
  uint64_t value = 0;
  if (whole[0] == '\x80') {
    for (const char byte : whole.substr(1)) {
      if (value >> 55 != 0) return std::nullopt;
      value = value << 8 | static_cast<uint8_t>(byte);
    }
    return value;
  }
  std::string_view digits = whole.substr(0, whole.find('\0'));
  digits.remove_prefix(std::min(digits.find_first_not_of(' '), digits.size()));
  digits = digits.substr(0, digits.find(' '));
  const char* last = digits.data() + digits.size();
  const auto parsed = std::from_chars(digits.data(), last, value, 8);
  if (digits.empty()) return 0;
  return parsed.ec == std::errc() && parsed.ptr == last ? std::optional(value) : std::nullopt;
}

bool has_right_checksum(const Block& header) {
  constexpr size_t kOffset = 148, kSize = 8;
  uint64_t sum = 0;
  for (size_t i = 0; i < kBlock; ++i) {
    const bool is_sum = i >= kOffset && i < kOffset + kSize;  // counts as blanks
    sum += is_sum ? ' ' : static_cast<uint8_t>(header[i]);
  }
  return number(header, kOffset, kSize) == sum;
}

std::string name_of(const Block& header) {
  std::string name(field(header, 0, 100));
  const std::string_view prefix = field(header, 345, 155);
  const bool is_posix = std::string_view(header.data() + 257, 6) == std::string_view("ustar\0", 6);
  return is_posix && !prefix.empty() ? std::string(prefix) + "/" + name : name;
}

/// What members of types L and x say about the next one.
struct Extra {
  std::optional<std::string> name;
  std::optional<uint64_t> size;
  bool is_sparse = false;
};

class TarReader {
 public:
  TarReader(ByteSource& source, MemberChoice& choice)
      : source_(source), choice_(choice), num_left_(choice.max_total_bytes() + kMaxOtherBytes) {}

  void read_all() {
    Extra extra;
    Block header;
    for (bool is_first = true; read_block(header, is_first); is_first = false) {
      if (std::all_of(header.begin(), header.end(), [](char c) { return c == 0; })) break;
      if (!has_right_checksum(header)) {
        choice_.fail(is_first ? kNoArchive : "must be a complete tar archive, is damaged");
      }
      read_member(header, extra);
    }
    while (fill(header) > 0) continue;
  }

 private:
  static constexpr const char* kNoArchive =
      "must be an archive (.zip, .tar, .tar.gz, .tar.xz), is none (other kinds: unpack it and "
      "import "
      "the folder)";

  void read_member(const Block& header, Extra& extra) {
    const char type = header[156];
    const std::optional<uint64_t> stated = number(header, 124, 12);
    if (!stated) choice_.fail("must be a complete tar archive, is damaged");
    if (type == 'L' || type == 'x') {
      const std::string text = read_extra(*stated);
      if (type == 'x') parse_lines(text, extra);
      if (type == 'L') extra.name = text.substr(0, text.find('\0'));
      return;
    }
    if (type == 'g' || type == 'K') {  // about all members; the target of a link
      read_bytes(*stated, [](std::string_view) {});
      return;
    }
    const Extra about = std::exchange(extra, {});
    const std::string name = about.name ? *about.name : name_of(header);
    const bool is_regular = (type == '0' || type == '\0' || type == '7') && !about.is_sparse;
    const bool has_no_bytes = type >= '1' && type <= '6';
    const uint64_t size = has_no_bytes ? 0 : about.size.value_or(*stated);
    const bool is_folder = type == '5' || name.ends_with('/');
    const auto index = is_folder ? std::nullopt : choice_.take(name);
    if (index && !is_regular) choice_.fail(name, "must be a regular file, is a link or a device");
    if (index) choice_.check_size(*index, name, size);
    read_bytes(size, [&](std::string_view piece) {
      if (index) choice_.put(*index, piece);
    });
  }

  /// False: there is nothing more, as after an archive without its last blocks.
  bool read_block(Block& block, bool is_first) {
    const size_t size = fill(block);
    if (size == 0 && !is_first) return false;
    if (size < kBlock) choice_.fail(is_first ? kNoArchive : kCut);
    return true;
  }

  /// Hands over so many bytes and passes what fills the last block.
  template <class F>
  void read_bytes(uint64_t size, F use) {
    std::array<char, 1 << 16> piece;
    for (uint64_t left = size; left > 0;) {
      const size_t wanted = std::min<uint64_t>(left, piece.size());
      if (fill(std::span(piece).first(wanted)) < wanted) choice_.fail(kCut);
      use(std::string_view(piece.data(), wanted));
      left -= wanted;
    }
    const size_t rest = (kBlock - size % kBlock) % kBlock;
    if (fill(std::span(piece).first(rest)) < rest) choice_.fail(kCut);
  }

  std::string read_extra(uint64_t size) {
    if (size > kMaxExtraBytes) {
      choice_.fail("names must have at most " + std::to_string(kMaxExtraBytes) +
                   " bytes, one has " + std::to_string(size));
    }
    std::string text;
    read_bytes(size, [&](std::string_view piece) { text += piece; });
    return text;
  }

  void parse_lines(std::string_view text, Extra& extra) const {
    while (!text.empty()) {
      size_t length = 0;
      const auto parsed = std::from_chars(text.data(), text.data() + text.size(), length);
      const auto num_digits = static_cast<size_t>(parsed.ptr - text.data());
      if (parsed.ec != std::errc() || length > text.size() || length < num_digits + 2) {
        choice_.fail("must be a complete tar archive, is damaged");
      }
      const std::string_view line = text.substr(num_digits + 1, length - num_digits - 2);
      text.remove_prefix(length);
      const size_t equals = std::min(line.find('='), line.size());
      const std::string_view key = line.substr(0, equals),
                             value = line.substr(std::min(equals + 1, line.size()));
      if (key == "path") extra.name = value;
      if (key.starts_with("GNU.sparse.")) extra.is_sparse = true;
      if (key == "size") {
        uint64_t size = 0;
        const auto end = std::from_chars(value.data(), value.data() + value.size(), size).ptr;
        if (end != value.data() + value.size()) {
          choice_.fail("must be a complete tar archive, is damaged");
        }
        extra.size = size;
      }
    }
  }

  /// Fills all of `to` unless the end comes first; how many bytes there were.
  size_t fill(std::span<char> to) {
    size_t done = 0;
    while (done < to.size()) {
      const size_t piece = source_.read(to.subspan(done));
      if (piece == 0) break;
      done += piece;
      count(piece);
    }
    return done;
  }

  void count(uint64_t num_bytes) {
    if (num_bytes > num_left_) {
      choice_.fail("must hold at most " +
                   std::to_string(choice_.max_total_bytes() + kMaxOtherBytes) +
                   " bytes, holds more (unpack it and import the folder)");
    }
    num_left_ -= num_bytes;
  }

  static constexpr const char* kCut = "must be a complete tar archive, is cut";

  ByteSource& source_;
  MemberChoice& choice_;
  uint64_t num_left_;
};

}  // namespace

void read_tar(ByteSource& source, MemberChoice& choice) { TarReader(source, choice).read_all(); }

}  // namespace elliptical::data
