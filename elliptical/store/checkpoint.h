// SPDX-License-Identifier: MIT
//
// Checkpoints: `checkpoints/step-N/` with model.safetensors, optimizer.safetensors, where an
// average of the weights is kept ema.safetensors, where the task has a state task.safetensors, where
// weights belong to words vocabulary.txt, and state.json, which holds the checksums of the others
// and of itself. One is written as `step-N.incomplete`, synced file by file, renamed, and the
// folder above synced: whatever happens, a folder called step-N is whole or was damaged later, which
// its checksums tell.
//
// There is no random state and no data position in it: both are functions of the seed and the step.
// A task's own state is what is not: tasks/task.h.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>

#include "elliptical/base/checkpoint_folder.h"
#include "elliptical/store/tensor_files.h"

namespace elliptical::store {

namespace fs = std::filesystem;

struct Checkpoint {
  CheckpointState state;
  fs::path folder;
  // Empty where it was not asked for; average and state of the task also where there are none.
  std::map<std::string, at::Tensor> model, optimizer, average, task;
  /// The words that the weights belong to, one a line, in the order of their numbers. Empty where
  /// there are none, and in checkpoints of versions that did not keep them.
  std::string vocabulary;
};

/// Which tensors are read; the vocabulary is read with each of them.
enum class CheckpointPart { kVocabulary, kModel, kAverage, kAll };

/// Looks at the words of a checkpoint; throws DataError, with the name of the file, when they are
/// none. What words are is known further up.
using CheckWords = std::function<void(const std::string& vocabulary, const std::string& name)>;

/// What is saved of a run beside its state; of the last three, what is empty has no file.
struct CheckpointContents {
  NamedTensors model, optimizer = {}, average = {}, task = {};
  std::string vocabulary = {};
};

/// Writes `checkpoints/step-N`; N must not exist. When it fails, nothing is left and what was there
/// is as before.
void save_checkpoint(const fs::path& checkpoints,
                     const CheckpointState& state,
                     const CheckpointContents& contents,
                     const Notice& notice);

/// Notes in the checkpoint of that step that its evaluation is in the records. Atomic.
void mark_evaluated(const fs::path& checkpoints, int64_t step);

/// Reads and verifies one. Throws DataError: file and what is wrong with it.
Checkpoint read_checkpoint(const fs::path& folder,
                           CheckpointPart part,
                           const CheckWords& check_words = {});

/// The newest that verifies; `notice` hears which ones do not, and why. None: none does. Whoever
/// reads weights of a run reads them here, so that damage falls back to the checkpoint before.
std::optional<Checkpoint> find_checkpoint(const fs::path& checkpoints,
                                          CheckpointPart part,
                                          const Notice& notice,
                                          const CheckWords& check_words = {});

/// The same for a run that goes on: RunError where there are some and each is damaged, since one
/// that began again would throw them away. None: there is no checkpoint at all.
std::optional<Checkpoint> newest_checkpoint(const fs::path& checkpoints,
                                            CheckpointPart part,
                                            const Notice& notice,
                                            const CheckWords& check_words = {});

/// Removes what an earlier process left half written or half removed, and moves damaged checkpoints
/// newer than `step` aside (`step-N.damaged`): that step will be written again.
void clean_checkpoints(const fs::path& checkpoints,
                       std::optional<int64_t> step,
                       const Notice& notice);

/// Removes all but the newest `num_kept` and `best`. A folder is renamed before it is emptied.
void retain_checkpoints(const fs::path& checkpoints, int64_t num_kept, std::optional<int64_t> best);

}  // namespace elliptical::store
