// SPDX-License-Identifier: MIT
//
// A whole run folder, of two checkpoints, and damage to it that bytes decide: any bytes make a
// folder, and most of them one that is nearly right.
#pragma once

#include <filesystem>
#include <set>
#include <string>
#include <string_view>

#include "elliptical/base/checkpoint_folder.h"

namespace elliptical::test {

struct RunDamage {
  std::set<std::string> damaged;  ///< "step-4", "records.jsonl", ...
  bool is_damaged(const std::string& name) const { return damaged.contains(name); }
};

/// Writes the folder anew. Each eight bytes are one damage: file, kind, four bytes of randomness,
/// whether checksums are made to fit afterwards.
RunDamage make_damaged_run(std::string_view bytes, const std::filesystem::path& folder);

/// Reads all files of a checkpoint, as store::read_checkpoint does, without torch. That both take
/// the same checkpoints is a test of the program (tests/run/damaged_runs_test.cpp).
void read_checkpoint_files(const CheckpointFolder& checkpoint);

std::string read_text(const std::filesystem::path& file);

}  // namespace elliptical::test
