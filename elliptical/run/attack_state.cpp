// SPDX-License-Identifier: MIT
#include "elliptical/run/attack_state.h"

#include "elliptical/base/errors.h"

namespace elliptical::run {

AttackState::AttackState(const std::filesystem::path& path, const Notice& notice)
    : path_(path), notice_(notice), writer_(path) {
  const auto damaged = [&](const std::string& line) {
    if (notice) notice(line + " (its batch is attacked again)");
  };
  for (const Record& record : read_records(path, damaged)) {
    try {
      const measure::AttackedBatch batch = measure::to_attacked_batch(record);
      finished_[{batch.digest, batch.batch}] = batch.score;
    } catch (const DataError& error) {
      damaged(path.string() + ": " + error.what());
    }
  }
}

const AttackScore* AttackState::find(const std::string& digest, int64_t batch, int64_t count) {
  const auto found = finished_.find({digest, batch});
  if (found == finished_.end() || found->second.count != count) return nullptr;
  if (count == 0 || !found->second.outcomes.empty()) return &found->second;
  if (notice_ && !has_told_) {
    notice_(path_.string() +
            ": some batches are of an earlier version, which did not say what became of each "
            "picture (they are attacked again)");
  }
  has_told_ = true;
  return nullptr;
}

void AttackState::append(const std::string& digest, int64_t batch, const AttackScore& score) {
  writer_.append(measure::to_record({digest, batch, score}));
  writer_.sync();
}

}  // namespace elliptical::run
