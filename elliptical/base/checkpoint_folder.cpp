// SPDX-License-Identifier: MIT
#include "elliptical/base/checkpoint_folder.h"

#include <algorithm>
#include <new>

#include "elliptical/base/available_memory.h"
#include "elliptical/base/checkpoint_state.h"
#include "elliptical/base/errors.h"
#include "elliptical/base/files.h"
#include "elliptical/base/json.h"
#include "elliptical/base/reading_failed.h"
#include "elliptical/base/sha256.h"

namespace elliptical {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

// A configuration, four files and a few fingerprints of data.
constexpr JsonLimits kStateLimits = {
    .max_bytes = size_t{4} << 20, .max_depth = 8, .max_values = 1000};
constexpr const char* kChecksum = "checksum";

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

std::map<std::string, std::string> texts(const JsonFields& object) {
  std::map<std::string, std::string> result;
  for (const std::string& name : object.names()) result[name] = object.text(name);
  return result;
}

/// What is at a path, links followed; nothing there is an answer, being short of memory is none.
fs::file_type type_of(const fs::path& path) {
  std::error_code error;
  const fs::file_type type = fs::status(path, error).type();
  if (type == fs::file_type::none) throw_reading_failed(path, "examine", error.value());
  return type;
}

/// Of everything in the object but the checksum itself.
std::string checksum_of(Json json) {
  json.erase(kChecksum);
  return sha256_hex(compact(json));
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
  json[kChecksum] = checksum_of(json);
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

fs::path CheckpointFolder::checked_file(const std::string& name) const {
  const fs::path path = folder / name;
  const auto expected = files.find(name);
  if (expected == files.end()) {
    throw DataError(path.string() + ": state.json does not mention it");
  }
  if (type_of(path) != fs::file_type::regular)
    throw DataError(path.string() + ": must be a file, is none");
  std::error_code error;
  const auto actual = static_cast<int64_t>(fs::file_size(path, error));
  if (error) throw_reading_failed(path, "examine", error.value());
  if (actual != expected->second.num_bytes) {
    throw DataError(path.string() + ": must have " + std::to_string(expected->second.num_bytes) +
                    " bytes, has " + std::to_string(actual));
  }
  if (sha256_of_file(path) != expected->second.sha256) {
    throw DataError(path.string() + ": its checksum must be the one in state.json, is not");
  }
  return path;
}

std::string checkpoint_state_checksum(std::string_view text, const fs::path& path) {
  const Json json = parse_json<Json>(text, path.string(), kStateLimits);
  const JsonFields fields(json, path.string());
  return checksum_of(json);
}

CheckpointFolder parse_checkpoint_state(std::string_view text, const fs::path& path) {
  const std::string file = path.string();
  const Json json = parse_json<Json>(text, file, kStateLimits);
  const JsonFields fields(json, file);
  if (fields.text(kChecksum) != checksum_of(json)) {
    throw DataError(file + ": its checksum must be that of its contents, is not");
  }
  if (const int64_t format = fields.whole_number("format"); format != 1) {
    throw DataError(file + ": format must be 1, is " + std::to_string(format));
  }
  CheckpointFolder result{.folder = path.parent_path(),
                          .state = {.step = fields.whole_number("step"),
                                    .seed = fields.whole_number("seed"),
                                    .evaluated = fields.yes_or_no("evaluated"),
                                    .config = fields.text("config"),
                                    .data = texts(fields.object("data")),
                                    .program = fields.text("program"),
                                    .origin = fields.text("origin")},
                          .files = {}};
  if (!fields.has("files")) return result;
  const JsonFields files = fields.object("files");
  for (const std::string& name : files.names()) {
    const JsonFields entry = files.object(name);
    result.files[name] = {entry.text("sha256"), entry.whole_number("bytes")};
  }
  return result;
}

CheckpointFolder open_checkpoint(const fs::path& folder) {
  if (type_of(folder) != fs::file_type::directory) {
    throw DataError(folder.string() + ": must be a folder, is none");
  }
  const fs::path state_path = folder / kStateFile;
  CheckpointFolder result =
      parse_checkpoint_state(read_file(state_path, kStateLimits.max_bytes), state_path);
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
  for (fs::directory_iterator it(checkpoints, error), end; !error && it != end;
       it.increment(error)) {
    if (const auto step = step_of(it->path().filename().string())) steps.push_back(*step);
  }
  // Only a folder that is not there has none: where it can not be listed, a run would begin again.
  if (error && error != std::errc::no_such_file_or_directory) {
    throw_reading_failed(checkpoints, "list", error.value());
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
      // What says nothing about a checkpoint goes on to the caller: one that is left out is moved
      // aside by the next training.
    } catch (const Interrupted&) {
      throw;
    } catch (const ResourceError&) {  // memory, open files
      throw;
    } catch (const std::bad_alloc&) {
      throw;
    } catch (const std::exception& error) {  // DataError, and what file systems and torch say
      if (notice) notice(folder.string() + ": can not be used: " + error.what());
    }
  }
  return std::nullopt;
}

}  // namespace elliptical
