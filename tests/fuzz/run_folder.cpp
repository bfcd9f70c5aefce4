// SPDX-License-Identifier: MIT
#include "tests/fuzz/run_folder.h"

#include <algorithm>
#include <fstream>
#include <map>
#include <span>
#include <vector>

#include "elliptical/base/checkpoint_folder.h"
#include "elliptical/base/checkpoint_state.h"
#include "elliptical/base/errors.h"
#include "elliptical/base/files.h"
#include "elliptical/base/json.h"
#include "elliptical/base/records.h"
#include "elliptical/base/safetensors.h"
#include "elliptical/base/sha256.h"
#include "elliptical/measure/attack_score.h"
#include "tests/fuzz/damage.h"
#include "tests/fuzz/targets.h"

namespace elliptical::test {
namespace {

namespace fs = std::filesystem;
using Files = std::map<std::string, std::string>;

std::string tensor_file(const std::vector<TensorBytes>& tensors,
                        const std::map<std::string, std::string>& metadata = {}) {
  std::string file;
  write_safetensors(tensors, metadata, [&](std::span<const std::byte> piece) {
    file.append(reinterpret_cast<const char*>(piece.data()), piece.size());
  });
  return file;
}

std::string checkpoint_path(int64_t step, const std::string& file) {
  return "checkpoints/" + checkpoint_name(step) + "/" + file;
}

WrittenFile written(const std::string& bytes) {
  return {sha256_hex(bytes), static_cast<int64_t>(bytes.size())};
}

void add_checkpoint(int64_t step, Files& files) {
  const std::vector<float> weights(6, static_cast<float>(step));
  const auto bytes = std::as_bytes(std::span(weights));
  const std::string model = tensor_file({{"proj.weight", ElementType::kF32, {2, 3}, bytes}}),
                    optimizer = tensor_file({{"m.proj.weight", ElementType::kF32, {2, 3}, bytes},
                                             {"v.proj.weight", ElementType::kF32, {6}, bytes}});
  const Files parts = {{kModelFile, model},
                       {kOptimizerFile, optimizer},
                       {kAverageFile, model},
                       {kTaskFile, tensor_file({{"weights", ElementType::kF32, {6}, bytes}})},
                       {kVocabularyFile, "<eos>\nthe\n<unk>\n"}};
  std::map<std::string, WrittenFile> checksums;
  for (const auto& [name, part] : parts) {
    files[checkpoint_path(step, name)] = part;
    checksums[name] = written(part);
  }
  files[checkpoint_path(step, kStateFile)] = checkpoint_state_text({.step = step,
                                                                    .seed = 1,
                                                                    .evaluated = true,
                                                                    .config = "seed = 1\n",
                                                                    .data = {{"train", "0123"}},
                                                                    .program = "elliptical 1"},
                                                                   checksums);
}

std::string record_lines() {
  std::string lines;
  for (const int64_t step : {2, 4}) {
    for (const char* split : {"valid", "test"}) {
      lines += to_json_line({.metric = "perplexity",
                             .value = 30.0 + static_cast<double>(step),
                             .count = 100,
                             .labels = {{"run", std::string("run")},
                                        {"task", std::string("language_model")},
                                        {"data", std::string("small")},
                                        {"attention", std::string("elliptical")},
                                        {"split", std::string(split)},
                                        {"perturbation", std::string("none")},
                                        {"leaks_future", false},
                                        {"seed", int64_t{1}},
                                        {"step", step}}}) +
               "\n";
    }
  }
  return lines;
}

std::string log_lines() {
  std::string lines;
  for (int64_t step = 1; step <= 4; ++step) {
    lines += to_json_line({.metric = "train_loss",
                           .value = 4.0 / static_cast<double>(step),
                           .count = 8,
                           .labels = {{"learning_rate", 0.1}, {"step", step}}}) +
             "\n";
  }
  return lines;
}

std::string attack_lines() {
  std::string lines;
  for (int64_t batch = 0; batch < 2; ++batch) {
    lines +=
        to_json_line(measure::to_record({.digest = "d",
                                         .batch = batch,
                                         .score = {.count = 4,
                                                   .clean_top1 = 3,
                                                   .clean_top5 = 4,
                                                   .robust_top1 = 2,
                                                   .robust_top5 = 3,
                                                   .seconds = 1.5,
                                                   .outcomes = "1100",
                                                   .stages = {{"apgd-ce", 3}, {"square", 2}}}})) +
        "\n";
  }
  return lines;
}

std::string snapshot_file() {
  const std::vector<float> maps(2 * 3 * 3, 1.0F / 3), vectors(2 * 3 * 2, 0.5F), metric(4, 1);
  return tensor_file(
      {{"layers.0.attention", ElementType::kF32, {2, 3, 3}, std::as_bytes(std::span(maps))},
       {"layers.0.queries", ElementType::kF32, {2, 3, 2}, std::as_bytes(std::span(vectors))},
       {"layers.0.keys", ElementType::kF32, {2, 3, 2}, std::as_bytes(std::span(vectors))},
       {"layers.0.metric", ElementType::kF32, {2, 1, 2}, std::as_bytes(std::span(metric))}},
      {{"step", "4"}, {"split", "valid"}, {"words", R"(["a", "b", "c"])"}});
}

/// Files of a run that nothing has happened to.
const Files& whole_run() {
  static const Files whole = [] {
    Files files;
    files["config.toml"] = "name = \"run\"\nseed = 1\n[task]\nname = \"language_model\"\n";
    files["records.jsonl"] = record_lines();
    files["log.jsonl"] = log_lines();
    files["attacks.jsonl"] = attack_lines();
    files["snapshot.safetensors"] = snapshot_file();
    add_checkpoint(2, files);
    add_checkpoint(4, files);
    return files;
  }();
  return whole;
}

/// The part of a run that a file is of.
std::string part_of(const std::string& name) {
  if (!name.starts_with("checkpoints/")) return name;
  return fs::path(name).parent_path().filename().string();
}

/// By what the file is.
std::string damaged(const std::string& name, const std::string& text, RandomStream& random) {
  if (random.below(8) == 0) return damage_bytes(text, random);
  if (name.ends_with(".safetensors")) return damage_tensors(text, random);
  if (name.ends_with(".json")) return damage_json(text, random);
  const bool has_lines = name.ends_with(".jsonl") || name.ends_with(".txt");
  return has_lines ? damage_lines(text, random) : damage_bytes(text, random);
}

/// Lengths and checksums in state.json are those of the files, so that what is behind them is read.
void fit_checksums(int64_t step, Files& files) {
  const std::string path = checkpoint_path(step, kStateFile);
  if (!files.contains(path)) return;
  succeeds<DataError>([&] {
    auto json = parse_json<nlohmann::ordered_json>(files[path], path);
    for (const char* name :
         {kModelFile, kOptimizerFile, kAverageFile, kTaskFile, kVocabularyFile}) {
      const auto file = files.find(checkpoint_path(step, name));
      if (file == files.end() || !json.is_object() || !json.contains("files")) continue;
      if (!json["files"].is_object()) continue;
      const WrittenFile fitting = written(file->second);
      json["files"][name] = {{"sha256", fitting.sha256}, {"bytes", fitting.num_bytes}};
    }
    json["checksum"] = checkpoint_state_checksum(json.dump(), path);
    files[path] = json.dump();
  });
}

uint32_t number(std::string_view bytes) {
  uint32_t value = 0;
  for (const char c : bytes) value = value << 8 | static_cast<unsigned char>(c);
  return value;
}

}  // namespace

void read_checkpoint_files(const CheckpointFolder& checkpoint) {
  for (const char* name : {kModelFile, kOptimizerFile, kAverageFile, kTaskFile}) {
    const bool may_lack = name == kAverageFile || name == kTaskFile;
    if (may_lack && !checkpoint.has(name)) continue;
    const SafetensorsFile file(checkpoint.checked_file(name));
    for (const TensorEntry& entry : file.header().tensors) {
      std::vector<std::byte> bytes(entry.end - entry.begin);
      file.read(entry, bytes);
    }
  }
  if (checkpoint.has(kVocabularyFile)) read_file(checkpoint.checked_file(kVocabularyFile));
}

std::string read_text(const fs::path& file) {
  std::ifstream stream(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

RunDamage make_damaged_run(std::string_view bytes, const fs::path& folder) {
  constexpr size_t kDamageBytes = 8, kMaxDamages = 8;
  Files files = whole_run();
  RunDamage result;
  std::set<std::string> folders;  // instead of files
  std::vector<std::string> names;
  for (const auto& file : files) names.push_back(file.first);
  for (size_t i = 0; i < kMaxDamages && bytes.size() >= kDamageBytes; ++i) {
    const std::string& name = names[static_cast<unsigned char>(bytes[0]) % names.size()];
    const auto kind = static_cast<unsigned char>(bytes[1]);
    RandomStream random(RandomKey(number(bytes.substr(2, 4))));
    const bool fits = (bytes[7] & 1) != 0;
    bytes.remove_prefix(kDamageBytes);
    result.damaged.insert(part_of(name));
    if (kind < 8) {
      files.erase(name);
    } else if (kind < 16) {
      files.erase(name);
      folders.insert(name);
    } else if (kind < 24) {
      const auto other = files.find(names[random.below(names.size())]);
      if (other != files.end()) files[name] = std::string(other->second);
    } else if (files.contains(name)) {
      files[name] = damaged(name, files[name], random);
    }
    if (fits && part_of(name).starts_with("step-")) {
      fit_checksums(part_of(name) == "step-2" ? 2 : 4, files);
    }
  }
  fs::remove_all(folder);
  for (const int64_t step : {2, 4}) {
    fs::create_directories(folder / "checkpoints" / checkpoint_name(step));
  }
  for (const auto& [name, text] : files) {
    if (!folders.contains(name)) std::ofstream(folder / name, std::ios::binary) << text;
  }
  for (const std::string& name : folders) fs::create_directory(folder / name);
  return result;
}

}  // namespace elliptical::test
