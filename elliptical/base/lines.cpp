// SPDX-License-Identifier: MIT
#include "elliptical/base/lines.h"

namespace elliptical {

void LineSplitter::keep(std::string_view part) {
  const size_t room = kMaxLineBytes - begun_.size();
  begun_.append(part.substr(0, room));
  is_whole_ = is_whole_ && part.size() <= room;
}

void LineSplitter::take(std::string_view piece) {
  while (true) {
    const size_t end = piece.find('\n');
    if (end == std::string_view::npos) break;
    const std::string_view part = piece.substr(0, end);
    if (begun_.empty() && is_whole_ && part.size() <= kMaxLineBytes) {  // nothing to be copied
      use_({.number = ++number_, .text = part});
    } else {
      keep(part);
      use_({.number = ++number_, .text = begun_, .is_whole = is_whole_});
      begun_.clear();
      is_whole_ = true;
    }
    piece.remove_prefix(end + 1);
  }
  keep(piece);
}

void for_each_line(const std::filesystem::path& path, const UseLine& use) {
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored)) return;
  LineSplitter splitter(use);
  read_pieces(path, [&](std::string_view piece) { splitter.take(piece); });
}

}  // namespace elliptical
