// SPDX-License-Identifier: MIT
//
// Files packed with xz.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

namespace elliptical::data {

/// What an xz stream holds. Throws DataError when it is damaged, cut or holds more than
/// `max_bytes`.
std::string unpack_xz(std::string_view packed, const std::string& name, uint64_t max_bytes);

/// The file, or what FILE.xz holds where only that is there. Throws DataError when neither is.
std::string read_plain_or_xz(const std::filesystem::path& file, uint64_t max_bytes);

/// True when the file or FILE.xz is there.
bool has_plain_or_xz(const std::filesystem::path& file);

}  // namespace elliptical::data
