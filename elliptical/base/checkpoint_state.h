// SPDX-License-Identifier: MIT
//
// The contents of state.json as text, which may be anybody's: bounded in depth and size before
// anything looks at it, every field asked for by its type. base/checkpoint_folder.h reads the file
// and what it vouches for.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "elliptical/base/checkpoint_folder.h"

namespace elliptical {

/// What state.json at `path` says, verified; DataError: file, field and what is wrong with it.
CheckpointFolder parse_checkpoint_state(std::string_view text, const std::filesystem::path& path);

/// The checksum that state.json with these contents must hold: of everything else in it. DataError
/// when it is no JSON object within bounds.
std::string checkpoint_state_checksum(std::string_view text, const std::filesystem::path& path);

}  // namespace elliptical
