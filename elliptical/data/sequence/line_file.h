// SPDX-License-Identifier: MIT
//
// The lines of a file by number, read when they are asked for: of a file of gigabytes no more is in
// memory than where its lines are. FILE may be there as FILE.xz, which is unpacked into memory. A
// last line without its end is a line; CR before the end and a byte-order mark are no part of one.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace elliptical::data {

class LineFile {
 public:
  /// Shown every line once, with what messages call it ("FILE:12"); false: it is not one of the
  /// lines (a header). May throw.
  using Check = std::function<bool(std::string_view line, const std::string& where)>;

  /// Reads it once. Throws DataError with the line when one is longer than kMaxLineBytes or has a
  /// NUL byte, when there is none, and what `check` throws.
  LineFile(const std::filesystem::path& file, const Check& check);
  ~LineFile();
  LineFile(const LineFile&) = delete;
  LineFile& operator=(const LineFile&) = delete;

  int64_t size() const { return static_cast<int64_t>(places_.size()); }
  /// "FILE:12".
  std::string where(int64_t index) const;
  /// May be called from any number of threads. DataError when the file has become shorter.
  std::string line(int64_t index) const;
  /// Of all its bytes, unpacked.
  const std::string& sha256() const { return sha256_; }

 private:
  struct Place {
    uint64_t offset;
    uint32_t length, number;
  };
  void read(const Check& check);

  std::filesystem::path file_;
  std::string unpacked_;  ///< of a packed file
  int descriptor_ = -1;   ///< of a plain one
  std::vector<Place> places_;
  std::string sha256_;
};

/// True when FILE or FILE.xz is there.
bool has_lines(const std::filesystem::path& file);

}  // namespace elliptical::data
