// SPDX-License-Identifier: MIT
#include "elliptical/data/sequence/line_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

#include "elliptical/base/errors.h"
#include "elliptical/base/lines.h"
#include "elliptical/base/sha256.h"
#include "elliptical/data/xz.h"

namespace elliptical::data {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kMaxUnpackedBytes = uint64_t{1} << 30;
constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

}  // namespace

LineFile::LineFile(const fs::path& file, const Check& check) : file_(file) {
  if (!fs::exists(file)) {
    unpacked_ = read_plain_or_xz(file, kMaxUnpackedBytes);
  } else {
    descriptor_ = ::open(file.c_str(), O_RDONLY | O_CLOEXEC);
    if (descriptor_ < 0) {
      throw DataError(file.string() + ": can not open: " + std::generic_category().message(errno));
    }
  }
  try {
    read(check);
  } catch (...) {
    if (descriptor_ >= 0) ::close(descriptor_);
    throw;
  }
}

LineFile::~LineFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

void LineFile::read(const Check& check) {
  uint64_t offset = 0;
  LineSplitter splitter([&](const Line& line) {
    const std::string where = file_.string() + ":" + std::to_string(line.number);
    if (!line.is_whole) {
      throw DataError(where + ": must have at most " + std::to_string(kMaxLineBytes) +
                      " bytes in a line, has more");
    }
    std::string_view text = line.text;
    uint64_t start = offset;
    offset += text.size() + 1;
    if (line.number == 1 && text.starts_with(kByteOrderMark)) {
      text.remove_prefix(kByteOrderMark.size());
      start += kByteOrderMark.size();
    }
    if (text.ends_with('\r')) text.remove_suffix(1);
    const size_t nul = text.find('\0');
    if (nul != std::string_view::npos) {
      throw DataError(where + ": must be text, has a NUL byte (byte " + std::to_string(nul + 1) +
                      ")");
    }
    if (!check(text, where)) return;
    places_.push_back(
        {start, static_cast<uint32_t>(text.size()), static_cast<uint32_t>(line.number)});
  });
  Sha256 sum;
  char last = '\n';
  const auto take = [&](std::string_view piece) {
    if (piece.empty()) return;
    sum.update(piece);
    splitter.take(piece);
    last = piece.back();
  };
  descriptor_ >= 0 ? read_pieces(file_, take) : take(unpacked_);
  if (last != '\n') splitter.take("\n");
  if (places_.empty()) throw DataError(file_.string() + ": must have lines, has none");
  sha256_ = sum.hex();
}

std::string LineFile::where(int64_t index) const {
  return file_.string() + ":" + std::to_string(places_[static_cast<size_t>(index)].number);
}

std::string LineFile::line(int64_t index) const {
  const Place& place = places_[static_cast<size_t>(index)];
  if (descriptor_ < 0) return unpacked_.substr(place.offset, place.length);
  std::string text(place.length, '\0');
  for (size_t done = 0; done < text.size();) {
    const ssize_t count = ::pread(descriptor_, text.data() + done, text.size() - done,
                                  static_cast<off_t>(place.offset + done));
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) throw DataError(where(index) + ": changed while it was in use");
    done += static_cast<size_t>(count);
  }
  return text;
}

bool has_lines(const fs::path& file) { return has_plain_or_xz(file); }

}  // namespace elliptical::data
