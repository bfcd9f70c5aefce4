// SPDX-License-Identifier: MIT
//
// A whole run folder, of two checkpoints, and damage to it that bytes decide: any bytes make a
// folder, and most of them one that is nearly right.
#pragma once

#include <filesystem>
#include <set>
#include <string>
#include <string_view>

namespace elliptical::test {

struct RunDamage {
  std::set<std::string> damaged;  ///< "step-4", "records.jsonl", ...
  bool is_damaged(const std::string& name) const { return damaged.contains(name); }
};

/// Writes the folder anew. Each eight bytes are one damage: file, kind, four bytes of randomness,
/// whether checksums are made to fit afterwards.
RunDamage make_damaged_run(std::string_view bytes, const std::filesystem::path& folder);

std::string read_text(const std::filesystem::path& file);

}  // namespace elliptical::test
