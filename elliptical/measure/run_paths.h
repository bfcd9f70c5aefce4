// SPDX-License-Identifier: MIT
//
// Where things are in the folder of a run:
//     config.toml     the effective configuration
//     records.jsonl   one measured number a line
//     log.jsonl       losses of single steps
//     attacks.jsonl   batches that `attack` has finished
//     lock            held while a process trains the run
//     attack.lock     held while a process attacks it
//     checkpoints/    step-N/ each (checkpoint.h)
//     snapshot.safetensors  what the model does on one small input, after `eval`
//     attack.safetensors    pictures before and after an attack, after `attack`
// Whoever writes there holds the lock (run/run_folder.h); reading needs none.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

namespace elliptical::measure {

/// Of config.toml: what is larger is none.
inline constexpr uint64_t kMaxConfigBytes = 1 << 20;

struct RunPaths {
  std::filesystem::path folder;
  std::filesystem::path config() const { return folder / "config.toml"; }
  std::filesystem::path records() const { return folder / "records.jsonl"; }
  std::filesystem::path log() const { return folder / "log.jsonl"; }
  std::filesystem::path attacks() const { return folder / "attacks.jsonl"; }
  std::filesystem::path lock() const { return folder / "lock"; }
  std::filesystem::path attack_lock() const { return folder / "attack.lock"; }
  std::filesystem::path checkpoints() const { return folder / "checkpoints"; }
  std::filesystem::path snapshot() const { return folder / "snapshot.safetensors"; }
  std::filesystem::path attack_pictures() const { return folder / "attack.safetensors"; }
  /// What records call the run: the folder's own name.
  std::string name() const;
};

}  // namespace elliptical::measure
