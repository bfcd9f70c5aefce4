// SPDX-License-Identifier: MIT
//
// Batches that an attack has finished, one line each in a file of the run, so that a long attack
// goes on where it stopped, however it stopped. A line counts only for the same case: its digest
// covers weights, data, attack, options, budget and seed. It says what became of each picture;
// lines of versions that only counted pictures do not.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "elliptical/base/records.h"
#include "elliptical/measure/attack_score.h"
#include "elliptical/store/checkpoint.h"

namespace elliptical::run {

using measure::AttackScore;

class AttackState {
 public:
  /// Reads what is there. Damaged lines are left out with a notice: their batches are done again.
  AttackState(const std::filesystem::path& path, const Notice& notice);

  /// The score of batch number `batch` of `count` pictures; nothing when it is not there, or, with
  /// one notice for all, when it does not say what became of each picture.
  const AttackScore* find(const std::string& digest, int64_t batch, int64_t count);
  /// Appended and synced.
  void append(const std::string& digest, int64_t batch, const AttackScore& score);

 private:
  std::filesystem::path path_;
  Notice notice_;
  bool has_told_ = false;  ///< that some lines are of an earlier version
  std::map<std::pair<std::string, int64_t>, AttackScore> finished_;
  RecordWriter writer_;
};

}  // namespace elliptical::run
