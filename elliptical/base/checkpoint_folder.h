// SPDX-License-Identifier: MIT
//
// The folder of a checkpoint, `checkpoints/step-N/`, without what its tensors mean: state.json
// holds the checksums of the other files and of itself, so that damage is told from weights before
// anybody uses them. store/checkpoint.h writes checkpoints and reads their tensors; whatever reads
// weights of another run looks for them here, so that nobody reads them unchecked.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace elliptical {

inline constexpr const char* kModelFile = "model.safetensors";
inline constexpr const char* kOptimizerFile = "optimizer.safetensors";
inline constexpr const char* kAverageFile = "ema.safetensors";
inline constexpr const char* kTaskFile = "task.safetensors";
inline constexpr const char* kVocabularyFile = "vocabulary.txt";
inline constexpr const char* kStateFile = "state.json";

/// What people are told on the way, one line each.
using Notice = std::function<void(const std::string&)>;

/// Checksum and length of a file that was written.
struct WrittenFile {
  std::string sha256;
  int64_t num_bytes = 0;
};

/// What state.json says.
struct CheckpointState {
  int64_t step = 0;  ///< updates done
  int64_t seed = 0;
  bool evaluated = false;                   ///< the evaluation due at this step is in the records
  std::string config;                       ///< the effective configuration it was trained with
  std::map<std::string, std::string> data;  ///< Task::data_fingerprint
  std::string program;                      ///< name and version
  std::string origin;                       ///< of a fork: "RUN step N"; else empty
};

/// state.json of a checkpoint with these files.
std::string checkpoint_state_text(const CheckpointState& state,
                                  const std::map<std::string, WrittenFile>& files);

/// One whose state is whole. Its files are checked when they are asked for: weights are large, and
/// most readers need one of them.
struct CheckpointFolder {
  std::filesystem::path folder;
  CheckpointState state;
  std::map<std::string, WrittenFile> files;

  bool has(const std::string& name) const { return files.contains(name); }
  /// Where the file lies; DataError unless it has the length and the checksum in state.json.
  std::filesystem::path checked_file(const std::string& name) const;
};

/// Reads and verifies state.json. Throws DataError: file and what is wrong with it; ResourceError.
CheckpointFolder open_checkpoint(const std::filesystem::path& folder);

/// "step-12"
std::string checkpoint_name(int64_t step);

/// Steps that have a folder (or anything else) of that name, ascending; none where `checkpoints` is
/// not there. Throws where it can not be listed: DataError, ResourceError.
std::vector<int64_t> checkpoint_steps(const std::filesystem::path& checkpoints);

/// Gives `read` one checkpoint after the other, newest first, until it throws no more; the step of
/// that one, or nothing. `notice` hears which ones can not be used, and why. A signal and a lack of
/// memory or open files (Interrupted, ResourceError, std::bad_alloc) go on to the caller.
std::optional<int64_t> newest_usable(
    const std::filesystem::path& checkpoints,
    const std::function<void(const CheckpointFolder& checkpoint)>& read,
    const Notice& notice);

}  // namespace elliptical
