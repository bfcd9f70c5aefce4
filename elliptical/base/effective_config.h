// SPDX-License-Identifier: MIT
//
// The effective configuration of a run, as `to_toml` (config.h) wrote it into config.toml and into
// checkpoints. It looks like a recipe, but it is whole and names no base: one that somebody planted
// in a run folder would be read with the rights of whoever looks at it.
#pragma once

#include <filesystem>
#include <string>

#include "elliptical/base/config.h"

namespace elliptical {

/// Reads it into the options behind `list`. Throws ConfigError as read_recipe does, and for a base.
void read_effective_config(const std::filesystem::path& file, const ListFields& list);

/// The same from text; `name` stands for the file in messages.
void read_effective_text(const std::string& text,
                         const std::filesystem::path& name,
                         const ListFields& list);

}  // namespace elliptical
