// SPDX-License-Identifier: MIT
//
// Files out of archives that somebody else made: zip, and tar as it is or in gzip or xz. Members
// are streamed; nothing is believed about them before it is checked. What is read is bounded by
// what is wanted, so a small archive can not become a large one: a member by its own limit,
// everything else that a packed tar makes us pass by a fixed one. Names of members choose nothing
// but whether they are wanted: no path is made of them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace elliptical::data {

struct WantedMember {
  std::vector<std::string> names;  ///< any of them: its path in the archive, or the end of its path
  uint64_t max_bytes;
};

/// A piece of what member number `index` of those wanted holds.
using MemberSink = std::function<void(size_t index, std::string_view piece)>;

/// Hands every wanted member to `sink` in pieces; the first one is empty, so that an empty member
/// is seen too. Of several members that would do, the first is taken. Throws DataError "NAME: what
/// must hold, what is" when the archive is damaged or no archive, a member is missing, is a link or
/// a device, is longer than its limit or than it claims, or when any name in it leaves the archive
/// ("../x", "/x").
void read_archive(std::string_view bytes,
                  const std::string& name,
                  const std::vector<WantedMember>& wanted,
                  const MemberSink& sink);

/// Writes wanted member i of the archive to the new file to[i].
void unpack_archive(const std::filesystem::path& archive,
                    const std::vector<WantedMember>& wanted,
                    const std::vector<std::filesystem::path>& to);

}  // namespace elliptical::data
