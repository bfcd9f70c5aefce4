// SPDX-License-Identifier: MIT
#include "elliptical/run/checkpoint.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "elliptical/base/errors.h"
#include "elliptical/base/files.h"
#include "elliptical/base/sha256.h"

namespace elliptical::run {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kModelFile = "model.safetensors";
constexpr const char* kOptimizerFile = "optimizer.safetensors";
constexpr const char* kAverageFile = "ema.safetensors";
constexpr const char* kStateFile = "state.json";
constexpr const char* kIncomplete = ".incomplete";
constexpr const char* kDamaged = ".damaged";
constexpr uint64_t kMaxStateBytes = 16 << 20;

std::string folder_name(int64_t step) { return "step-" + std::to_string(step); }

/// N of "step-N".
std::optional<int64_t> step_of(const std::string& name) {
  if (!name.starts_with("step-")) return std::nullopt;
  const std::string digits = name.substr(5);
  if (digits.empty() || digits.size() > 18 ||
      digits.find_first_not_of("0123456789") != std::string::npos) {
    return std::nullopt;
  }
  return std::stoll(digits);
}

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

/// Without line breaks; paths that are not UTF-8 get replacement characters.
std::string compact(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string with_checksum(Json json) {
  json["checksum"] = sha256_hex(compact(json));
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string state_text(const CheckpointState& state,
                       const std::map<std::string, WrittenFile>& files) {
  Json json = {{"format", 1},
               {"program", state.program},
               {"step", state.step},
               {"seed", state.seed},
               {"evaluated", state.evaluated},
               {"data", state.data},
               {"origin", state.origin},
               {"config", state.config}};
  for (const auto& [name, file] : files) {
    json["files"][name] = {{"sha256", file.sha256}, {"bytes", file.num_bytes}};
  }
  return with_checksum(std::move(json));
}

CheckpointState parse_state(const fs::path& path, const std::string& text, Json& json) {
  json = Json::parse(text, nullptr, false);
  if (!json.is_object() || !json.contains("checksum")) {
    throw DataError(path.string() + ": must be a JSON object with a checksum, is not");
  }
  const Json checksum = json["checksum"];
  json.erase("checksum");
  if (checksum != sha256_hex(compact(json))) {
    throw DataError(path.string() + ": its checksum must be that of its contents, is not");
  }
  try {
    if (json.at("format") != 1) {
      throw DataError(path.string() + ": format must be 1, is " + json.at("format").dump());
    }
    return {.step = json.at("step"),
            .seed = json.at("seed"),
            .evaluated = json.at("evaluated"),
            .config = json.at("config"),
            .data = json.at("data"),
            .program = json.at("program"),
            .origin = json.at("origin")};
  } catch (const nlohmann::json::exception& error) {
    throw DataError(path.string() + ": " + error.what());
  }
}

void verify_file(const fs::path& path, const Json& files) {
  const std::string name = path.filename().string();
  if (!files.contains(name)) throw DataError(path.string() + ": state.json does not mention it");
  std::error_code error;
  if (!fs::is_regular_file(path, error))
    throw DataError(path.string() + ": must be a file, is none");
  const uint64_t expected = files[name].value("bytes", uint64_t{0});
  const uint64_t actual = fs::file_size(path, error);
  if (error) throw DataError(path.string() + ": could not be read: " + error.message());
  if (actual != expected) {
    throw DataError(path.string() + ": must have " + std::to_string(expected) + " bytes, has " +
                    std::to_string(actual));
  }
  if (sha256_of_file(path) != files[name].value("sha256", "")) {
    throw DataError(path.string() + ": its checksum must be the one in state.json, is not");
  }
}

}  // namespace

void save_checkpoint(const fs::path& checkpoints,
                     const CheckpointState& state,
                     const NamedTensors& model,
                     const NamedTensors& optimizer,
                     const NamedTensors& average,
                     const Notice& notice) {
  const fs::path final_folder = checkpoints / folder_name(state.step);
  fs::path folder = final_folder;
  folder += kIncomplete;
  if (fs::exists(fs::symlink_status(folder))) {  // a link too: it is removed, not followed
    notice(folder.string() + ": left by an earlier process, replaced");
    fs::remove_all(folder);
  }
  try {
    fs::create_directory(folder);
    std::map<std::string, WrittenFile> files;
    files[kModelFile] = write_tensors(folder / kModelFile, model);
    files[kOptimizerFile] = write_tensors(folder / kOptimizerFile, optimizer);
    if (!average.empty()) files[kAverageFile] = write_tensors(folder / kAverageFile, average);
    FileWriter state_file(folder / kStateFile, IfThere::kFail);
    state_file.write(state_text(state, files));
    state_file.finish();
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
  const fs::path folder = checkpoints / folder_name(step);
  if (fs::is_symlink(fs::symlink_status(folder))) return;  // it is another run's
  const fs::path path = folder / kStateFile;
  Json json;
  parse_state(path, read_file(path, kMaxStateBytes), json);
  json["evaluated"] = true;
  write_file_atomically(path, with_checksum(std::move(json)));
}

Checkpoint read_checkpoint(const fs::path& folder, CheckpointPart part) {
  std::error_code error;
  if (!fs::is_directory(folder, error)) {
    throw DataError(folder.string() + ": must be a folder, is none");
  }
  Json json;
  const fs::path state_path = folder / kStateFile;
  Checkpoint result{.folder = folder};
  result.state = parse_state(state_path, read_file(state_path, kMaxStateBytes), json);
  if (folder.filename() != folder_name(result.state.step)) {
    throw DataError(state_path.string() + ": step must be that of the folder, is " +
                    std::to_string(result.state.step));
  }
  const auto read = [&](const char* name) {
    verify_file(folder / name, json["files"]);
    return read_tensors(folder / name);
  };
  if (part != CheckpointPart::kAverage) result.model = read(kModelFile);
  if (part == CheckpointPart::kAll) result.optimizer = read(kOptimizerFile);
  const bool has_average = json["files"].contains(kAverageFile);
  if (part == CheckpointPart::kAverage || (part == CheckpointPart::kAll && has_average)) {
    result.average = read(kAverageFile);
  }
  return result;
}

std::vector<int64_t> checkpoint_steps(const fs::path& checkpoints) {
  std::vector<int64_t> steps;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(checkpoints, error)) {
    if (const auto step = step_of(entry.path().filename().string())) steps.push_back(*step);
  }
  std::sort(steps.begin(), steps.end());
  return steps;
}

std::optional<Checkpoint> newest_checkpoint(const fs::path& checkpoints,
                                            CheckpointPart part,
                                            const Notice& notice) {
  const std::vector<int64_t> steps = checkpoint_steps(checkpoints);
  for (auto step = steps.rbegin(); step != steps.rend(); ++step) {
    const fs::path folder = checkpoints / folder_name(*step);
    try {
      return read_checkpoint(folder, part);
    } catch (const std::runtime_error& error) {  // DataError, and what the file system says
      notice(folder.string() + ": can not be used: " + error.what());
    }
  }
  if (steps.empty()) return std::nullopt;
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
    const fs::path folder = checkpoints / folder_name(other);
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
    if (steps[i] != best) remove_folder(checkpoints / folder_name(steps[i]));
  }
}

}  // namespace elliptical::run
