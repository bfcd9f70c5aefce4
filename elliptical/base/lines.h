// SPDX-License-Identifier: MIT
//
// Lines of text files that others may have written or that a death has cut, one after the other:
// neither the length of a file nor that of a line decides how much memory reading takes. What
// follows the last line end is no line.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

namespace elliptical {

/// What no sane line of ours exceeds.
inline constexpr size_t kMaxLineBytes = size_t{1} << 20;

struct Line {
  int64_t number = 0;     ///< from 1
  std::string_view text;  ///< without its end; of a longer line its first kMaxLineBytes
  bool is_whole = true;   ///< false: it is longer
};

using UseLine = std::function<void(const Line& line)>;

/// Takes a text in pieces and gives lines.
class LineSplitter {
 public:
  explicit LineSplitter(UseLine use) : use_(std::move(use)) {}
  void take(std::string_view piece);

 private:
  void keep(std::string_view part);

  UseLine use_;
  std::string begun_;  ///< of the line whose end has not come yet
  bool is_whole_ = true;
  int64_t number_ = 0;
};

/// Hands a file on piece by piece, however long it is. DataError when it can not be read.
void read_pieces(const std::filesystem::path& path,
                 const std::function<void(std::string_view)>& use);

/// Calls `use` for each line; a missing file has none. DataError when it can not be read.
void for_each_line(const std::filesystem::path& path, const UseLine& use);

}  // namespace elliptical
