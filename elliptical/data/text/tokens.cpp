// SPDX-License-Identifier: MIT
#include "elliptical/data/text/tokens.h"

#include <algorithm>

#include "elliptical/base/errors.h"
#include "elliptical/base/files.h"
#include "elliptical/base/utf8.h"

namespace elliptical::data {
namespace {

[[noreturn]] void fail(std::string_view text,
                       const std::string& file,
                       size_t offset,
                       const std::string& what) {
  const auto line =
      1 + std::count(text.begin(), text.begin() + static_cast<ptrdiff_t>(offset), '\n');
  throw DataError(file + ":" + std::to_string(line) + ": " + what + " at offset " +
                  std::to_string(offset));
}

}  // namespace

void check_text(std::string_view text, const std::string& file) {
  const size_t nul = text.find('\0');
  if (nul != std::string_view::npos) {
    fail(text, file, nul, "must be text, has a NUL byte");
  }
  const size_t invalid = find_invalid_utf8(text);
  if (invalid != std::string_view::npos) fail(text, file, invalid, "must be UTF-8, is not");
  // From space to space in the longest strides that are allowed.
  size_t start = 0;
  while (text.size() - start > kMaxWordBytes) {
    const size_t space = text.substr(start, kMaxWordBytes + 1).find_last_of(" \n\t\r");
    if (space == std::string_view::npos) {
      fail(text, file, start,
           "must have a space in " + std::to_string(kMaxWordBytes) + " bytes, has none");
    }
    start += space + 1;
  }
}

std::string read_text(const std::filesystem::path& file) {
  constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
  std::string text = read_file(file);
  if (text.starts_with(kByteOrderMark)) text.erase(0, kByteOrderMark.size());
  return text;
}

}  // namespace elliptical::data
