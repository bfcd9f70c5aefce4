// SPDX-License-Identifier: MIT
#include "elliptical/store/checkpoint.h"

#include "elliptical/base/errors.h"
#include "elliptical/base/files.h"
#include "elliptical/base/sha256.h"

namespace elliptical::store {
namespace {

constexpr const char* kIncomplete = ".incomplete";
constexpr const char* kDamaged = ".damaged";
constexpr uint64_t kMaxVocabularyBytes = uint64_t{1} << 30;

/// Removes a folder so that what is left of it, if we die meanwhile, can not be taken for a
/// checkpoint.
void remove_folder(const fs::path& folder) {
  fs::path aside = folder;
  if (folder.extension() != kIncomplete) {
    aside += kIncomplete;
    fs::remove_all(aside);
    fs::rename(folder, aside);
  }
  fs::remove_all(aside);
}

/// A new file, synced.
WrittenFile write_text(const fs::path& path, const std::string& text) {
  FileWriter file(path, IfThere::kFail);
  file.write(text);
  file.finish();
  return {.sha256 = sha256_hex(text), .num_bytes = static_cast<int64_t>(text.size())};
}

Checkpoint read_parts(const CheckpointFolder& from,
                      CheckpointPart part,
                      const CheckWords& check_words) {
  Checkpoint result{.state = from.state, .folder = from.folder};
  const auto read = [&](const char* name) { return read_tensors(from.checked_file(name)); };
  if (from.has(kVocabularyFile)) {
    const fs::path file = from.checked_file(kVocabularyFile);
    result.vocabulary = read_file(file, kMaxVocabularyBytes);
    if (check_words) check_words(result.vocabulary, file.string());
  }
  if (part == CheckpointPart::kModel || part == CheckpointPart::kAll) {
    result.model = read(kModelFile);
  }
  if (part == CheckpointPart::kAll) result.optimizer = read(kOptimizerFile);
  if (part == CheckpointPart::kAverage ||
      (part == CheckpointPart::kAll && from.has(kAverageFile))) {
    result.average = read(kAverageFile);
  }
  if (part == CheckpointPart::kAll && from.has(kTaskFile)) result.task = read(kTaskFile);
  return result;
}

}  // namespace

void save_checkpoint(const fs::path& checkpoints,
                     const CheckpointState& state,
                     const CheckpointContents& contents,
                     const Notice& notice) {
  const fs::path final_folder = checkpoints / checkpoint_name(state.step);
  fs::path folder = final_folder;
  folder += kIncomplete;
  if (fs::exists(fs::symlink_status(folder))) {  // a link too: it is removed, not followed
    notice(folder.string() + ": left by an earlier process, replaced");
    fs::remove_all(folder);
  }
  try {
    fs::create_directory(folder);
    std::map<std::string, WrittenFile> files;
    const auto write = [&](const char* name, const NamedTensors& tensors) {
      files[name] = write_tensors(folder / name, tensors);
    };
    write(kModelFile, contents.model);
    write(kOptimizerFile, contents.optimizer);
    if (!contents.average.empty()) write(kAverageFile, contents.average);
    if (!contents.task.empty()) write(kTaskFile, contents.task);
    if (!contents.vocabulary.empty()) {
      files[kVocabularyFile] = write_text(folder / kVocabularyFile, contents.vocabulary);
    }
    write_text(folder / kStateFile, checkpoint_state_text(state, files));
    sync_folder(folder);
    fs::rename(folder, final_folder);
  } catch (...) {
    std::error_code ignored;
    fs::remove_all(folder, ignored);
    throw;
  }
  sync_folder(checkpoints);
}

void mark_evaluated(const fs::path& checkpoints, int64_t step) {
  const fs::path folder = checkpoints / checkpoint_name(step);
  if (fs::is_symlink(fs::symlink_status(folder))) return;  // it is another run's
  CheckpointFolder checkpoint = open_checkpoint(folder);
  checkpoint.state.evaluated = true;
  write_file_atomically(checkpoint.folder / kStateFile,
                        checkpoint_state_text(checkpoint.state, checkpoint.files));
}

Checkpoint read_checkpoint(const fs::path& folder,
                           CheckpointPart part,
                           const CheckWords& check_words) {
  return read_parts(open_checkpoint(folder), part, check_words);
}

std::optional<Checkpoint> find_checkpoint(const fs::path& checkpoints,
                                          CheckpointPart part,
                                          const Notice& notice,
                                          const CheckWords& check_words) {
  std::optional<Checkpoint> result;
  newest_usable(
      checkpoints,
      [&](const CheckpointFolder& from) { result = read_parts(from, part, check_words); }, notice);
  return result;
}

std::optional<Checkpoint> newest_checkpoint(const fs::path& checkpoints,
                                            CheckpointPart part,
                                            const Notice& notice,
                                            const CheckWords& check_words) {
  std::optional<Checkpoint> result = find_checkpoint(checkpoints, part, notice, check_words);
  if (result || checkpoint_steps(checkpoints).empty()) return result;
  throw RunError(checkpoints.string() +
                 ": one checkpoint must be whole, none is (to start again from the first step: "
                 "remove this folder)");
}

void clean_checkpoints(const fs::path& checkpoints,
                       std::optional<int64_t> step,
                       const Notice& notice) {
  fs::create_directories(checkpoints);
  std::vector<fs::path> leftovers;
  for (const fs::directory_entry& entry : fs::directory_iterator(checkpoints)) {
    if (entry.path().extension() == kIncomplete) leftovers.push_back(entry.path());
  }
  for (const fs::path& path : leftovers) {
    remove_folder(path);
    notice(path.string() + ": left by an earlier process, removed");
  }
  for (const int64_t other : checkpoint_steps(checkpoints)) {
    if (!step || other <= *step) continue;
    const fs::path folder = checkpoints / checkpoint_name(other);
    fs::path aside = folder;
    aside += kDamaged;
    fs::remove_all(aside);
    fs::rename(folder, aside);
    notice(folder.string() + ": damaged, moved to " + aside.filename().string());
  }
  sync_folder(checkpoints);
}

void retain_checkpoints(const fs::path& checkpoints,
                        int64_t num_kept,
                        std::optional<int64_t> best) {
  const std::vector<int64_t> steps = checkpoint_steps(checkpoints);
  const int64_t num_old = static_cast<int64_t>(steps.size()) - num_kept;
  for (int64_t i = 0; i < num_old; ++i) {
    if (steps[i] != best) remove_folder(checkpoints / checkpoint_name(steps[i]));
  }
}

}  // namespace elliptical::store
