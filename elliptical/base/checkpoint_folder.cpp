// SPDX-License-Identifier: MIT
#include "elliptical/base/checkpoint_folder.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "elliptical/base/errors.h"
#include "elliptical/base/files.h"
#include "elliptical/base/sha256.h"

namespace elliptical {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr uint64_t kMaxStateBytes = 16 << 20;

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

/// Without line breaks; paths that are not UTF-8 get replacement characters.
std::string compact(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

void parse_state(const fs::path& path, const std::string& text, CheckpointFolder& result) {
  Json json = Json::parse(text, nullptr, false);
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
    result.state = {.step = json.at("step"),
                    .seed = json.at("seed"),
                    .evaluated = json.at("evaluated"),
                    .config = json.at("config"),
                    .data = json.at("data"),
                    .program = json.at("program"),
                    .origin = json.at("origin")};
    if (!json.contains("files")) return;
    for (const auto& [name, file] : json.at("files").items()) {
      result.files[name] = {file.value("sha256", ""), file.value("bytes", int64_t{0})};
    }
  } catch (const nlohmann::json::exception& error) {
    throw DataError(path.string() + ": " + error.what());
  }
}

}  // namespace

std::string checkpoint_state_text(const CheckpointState& state,
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
  json["checksum"] = sha256_hex(compact(json));
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

fs::path CheckpointFolder::checked_file(const std::string& name) const {
  const fs::path path = folder / name;
  const auto expected = files.find(name);
  if (expected == files.end()) {
    throw DataError(path.string() + ": state.json does not mention it");
  }
  std::error_code error;
  if (!fs::is_regular_file(path, error))
    throw DataError(path.string() + ": must be a file, is none");
  const auto actual = static_cast<int64_t>(fs::file_size(path, error));
  if (error) throw DataError(path.string() + ": could not be read: " + error.message());
  if (actual != expected->second.num_bytes) {
    throw DataError(path.string() + ": must have " + std::to_string(expected->second.num_bytes) +
                    " bytes, has " + std::to_string(actual));
  }
  if (sha256_of_file(path) != expected->second.sha256) {
    throw DataError(path.string() + ": its checksum must be the one in state.json, is not");
  }
  return path;
}

CheckpointFolder open_checkpoint(const fs::path& folder) {
  std::error_code error;
  if (!fs::is_directory(folder, error)) {
    throw DataError(folder.string() + ": must be a folder, is none");
  }
  const fs::path state_path = folder / kStateFile;
  CheckpointFolder result{.folder = folder};
  parse_state(state_path, read_file(state_path, kMaxStateBytes), result);
  if (folder.filename() != checkpoint_name(result.state.step)) {
    throw DataError(state_path.string() + ": step must be that of the folder, is " +
                    std::to_string(result.state.step));
  }
  return result;
}

std::string checkpoint_name(int64_t step) { return "step-" + std::to_string(step); }

std::vector<int64_t> checkpoint_steps(const fs::path& checkpoints) {
  std::vector<int64_t> steps;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(checkpoints, error)) {
    if (const auto step = step_of(entry.path().filename().string())) steps.push_back(*step);
  }
  std::sort(steps.begin(), steps.end());
  return steps;
}

std::optional<int64_t> newest_usable(const fs::path& checkpoints,
                                     const std::function<void(const CheckpointFolder&)>& read,
                                     const Notice& notice) {
  const std::vector<int64_t> steps = checkpoint_steps(checkpoints);
  for (auto step = steps.rbegin(); step != steps.rend(); ++step) {
    const fs::path folder = checkpoints / checkpoint_name(*step);
    try {
      read(open_checkpoint(folder));
      return *step;
    } catch (const std::runtime_error& error) {  // DataError, and what the file system says
      if (notice) notice(folder.string() + ": can not be used: " + error.what());
    }
  }
  return std::nullopt;
}

}  // namespace elliptical
