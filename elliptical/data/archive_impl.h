// SPDX-License-Identifier: MIT
//
// The parts of archive.cpp: one reader for each format, and which members they hand over.
#pragma once

#include <memory>
#include <optional>
#include <span>

#include "elliptical/data/archive.h"

namespace elliptical::data {

/// Which members are wanted and which were found. Throws what read_archive throws.
class MemberChoice {
 public:
  MemberChoice(const std::string& archive,
               const std::vector<WantedMember>& wanted,
               const MemberSink& sink);

  /// The wanted member that this one is, if it is one that has not been found yet; announces it to
  /// the sink.
  std::optional<size_t> take(std::string_view member);
  /// Throws unless a member that is taken may have that many bytes.
  void check_size(size_t index, std::string_view member, uint64_t num_bytes) const;
  void put(size_t index, std::string_view piece) const { sink_(index, piece); }
  /// The largest number of bytes that all of them can have.
  uint64_t max_total_bytes() const;
  /// Throws unless every one was found.
  void require_all() const;

  /// "ARCHIVE: what must hold, what is", or "ARCHIVE, MEMBER: ...".
  [[noreturn]] void fail(const std::string& what) const;
  [[noreturn]] void fail(std::string_view member, const std::string& what) const;

 private:
  const std::string& archive_;
  const std::vector<WantedMember>& wanted_;
  const MemberSink& sink_;
  std::vector<bool> found_;
};

/// Bytes that are unpacked as they are asked for.
class ByteSource {
 public:
  virtual ~ByteSource() = default;
  /// Fills the front of `to`; how many bytes came, 0 only at the end. Throws DataError when what is
  /// packed is damaged or cut.
  virtual size_t read(std::span<char> to) = 0;
};

/// Of the bytes themselves, or of what they pack when they begin as gzip or xz do.
std::unique_ptr<ByteSource> open_bytes(std::string_view bytes, const std::string& name);

void read_zip(std::string_view bytes, MemberChoice& choice);
void read_tar(ByteSource& source, MemberChoice& choice);

}  // namespace elliptical::data
