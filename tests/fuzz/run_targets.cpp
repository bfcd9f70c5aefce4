// SPDX-License-Identifier: MIT
//
// Fuzz targets for what a run folder holds: state.json, lines of records and attacks, snapshots,
// and a whole folder that is damaged as its input says. Damage gives the next older checkpoint or
// an error of the promised type that names the file; never a crash, more than a second, or memory
// beyond the bound of the fuzzer.
#include <stdlib.h>
#include <time.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <span>

#include "elliptical/base/checkpoint_folder.h"
#include "elliptical/base/checkpoint_state.h"
#include "elliptical/base/errors.h"
#include "elliptical/base/json.h"
#include "elliptical/base/lines.h"
#include "elliptical/base/records.h"
#include "elliptical/base/safetensors.h"
#include "elliptical/measure/attack_score.h"
#include "elliptical/report/attack_pictures.h"
#include "elliptical/report/comparison.h"
#include "elliptical/report/heat_maps.h"
#include "elliptical/report/run_data.h"
#include "elliptical/report/snapshots.h"
#include "elliptical/tasks/classify_image_measures.h"
#include "elliptical/tasks/language_model_measures.h"
#include "tests/fuzz/damage.h"
#include "tests/fuzz/run_folder.h"
#include "tests/fuzz/targets.h"

namespace elliptical::test {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

/// Of this thread, so that a busy machine is no hang.
class CpuLimit {
 public:
  ~CpuLimit() { require(now() - start_ < 1, "an input takes less than a second"); }

 private:
  static double now() {
    timespec time{};
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
  }
  double start_ = now();
};

/// True when `action` ends; a DataError must name the file.
template <class Action>
bool reads(const fs::path& file, Action action) {
  try {
    action();
    return true;
  } catch (const DataError& error) {
    require(std::string(error.what()).find(file.string()) != std::string::npos,
            "an error names the file");
    return false;
  }
}

/// In memory where the system has such a place.
fs::path scratch_folder() {
  const fs::path memory = "/dev/shm";
  std::error_code ignored;
  std::string name =
      ((fs::is_directory(memory, ignored) ? memory : fs::temp_directory_path()) / "fuzz.XXXXXX")
          .string();
  require(::mkdtemp(name.data()) != nullptr, "there is a folder for files");
  return name;
}

/// Goes with the process.
const fs::path& scratch() {
  struct Scratch {
    fs::path path = scratch_folder();
    ~Scratch() {
      std::error_code ignored;
      fs::remove_all(path, ignored);
    }
  };
  static const Scratch folder;
  return folder.path;
}

void run_state(std::string_view bytes) {
  const CpuLimit limit;
  const fs::path file = "run/checkpoints/step-2/state.json";
  reads(file, [&] { parse_checkpoint_state(bytes, file); });
  // With the right checksum the fields behind it are read as well.
  reads(file, [&] {
    const std::string checksum = checkpoint_state_checksum(bytes, file);
    Json json = parse_json<Json>(bytes, file.string());
    json["checksum"] = checksum;
    const CheckpointFolder read = parse_checkpoint_state(json.dump(), file);
    const std::string text = checkpoint_state_text(read.state, read.files);
    const CheckpointFolder again = parse_checkpoint_state(text, file);
    require(checkpoint_state_text(again.state, again.files) == text, "a state reads back");
  });
}

void run_records(std::string_view bytes) {
  const CpuLimit limit;
  std::string kept;
  size_t num_lines = 0;
  LineSplitter splitter([&](const Line& line) {
    ++num_lines;
    succeeds<DataError>([&] { kept += to_json_line(parse_record(std::string(line.text))) + "\n"; });
  });
  for (size_t i = 0; i < bytes.size(); i += 7) splitter.take(bytes.substr(i, 7));
  require(static_cast<size_t>(std::count(bytes.begin(), bytes.end(), '\n')) == num_lines,
          "lines are those with an end");
  std::string again;
  LineSplitter second([&](const Line& line) {
    again += to_json_line(parse_record(std::string(line.text))) + "\n";
  });
  second.take(kept);
  require(again == kept, "records read back");
}

void add_attacks(std::string_view bytes) {
  std::map<std::string, measure::AttackScore> totals;
  LineSplitter splitter([&](const Line& line) {
    succeeds<DataError>([&] {
      const measure::AttackedBatch batch =
          measure::to_attacked_batch(parse_record(std::string(line.text)));
      const std::string text = to_json_line(to_record(batch));
      require(to_json_line(to_record(measure::to_attacked_batch(parse_record(text)))) == text,
              "a batch reads back");
      measure::AttackScore& total = totals[batch.digest];
      total.add(batch.score);
      require(total.robust_top1 >= 0 && total.robust_top1 <= total.count, "sums stay sums");
      for (const auto& [stage, robust] : total.stages) {
        require(robust >= 0 && robust <= total.count, "robust pictures are pictures");
      }
    });
  });
  splitter.take(bytes);
}

void run_attacks(std::string_view bytes) {
  const CpuLimit limit;
  add_attacks(bytes);
}

void show(const report::RunData& run) {
  std::vector<std::string> problems;
  for (const auto& read :
       {report::read_snapshots, report::read_heat_maps, report::read_attack_pictures}) {
    constexpr size_t kPageBytes = 1'000'000;
    const nlohmann::json shown = read({run}, {0}, problems, kPageBytes);
    require(shown.dump().size() < 4 * kPageBytes, "a page has bounds");
  }
  for (const std::string& problem : problems) {
    const auto names = [&](const fs::path& file) {
      return !file.empty() && problem.find(file.string()) != std::string::npos;
    };
    require(names(run.snapshot) || names(run.attack_pictures), "a problem names the file");
  }
}

/// One file, read as a snapshot and as pictures of an attack.
void run_snapshot(std::string_view bytes) {
  const CpuLimit limit;
  const fs::path file = scratch() / "snapshot.safetensors";
  std::ofstream(file, std::ios::binary) << bytes;
  report::RunData run;
  run.folder = scratch();
  run.snapshot = run.attack_pictures = file;
  show(run);
}

void read_checkpoint_files(const CheckpointFolder& checkpoint) {
  for (const char* name : {kModelFile, kOptimizerFile}) {
    const SafetensorsFile file(checkpoint.checked_file(name));
    for (const TensorEntry& entry : file.header().tensors) {
      std::vector<std::byte> bytes(entry.end - entry.begin);
      file.read(entry, bytes);
    }
  }
}

void run_folder(std::string_view bytes) {
  const CpuLimit limit;
  const fs::path folder = scratch() / "run";
  const RunDamage damage = make_damaged_run(bytes, folder);

  const fs::path checkpoints = folder / "checkpoints";
  std::vector<std::string> notices;
  const auto newest = newest_usable(checkpoints, read_checkpoint_files,
                                    [&](const std::string& line) { notices.push_back(line); });
  if (!damage.is_damaged("step-4")) require(newest == 4, "the newest whole checkpoint is used");
  if (!damage.is_damaged("step-2")) {
    require(newest == 4 || newest == 2, "the next older checkpoint is used");
  }
  for (const std::string& notice : notices) {
    require(notice.find((checkpoints / "step-").string()) != std::string::npos,
            "a notice names the checkpoint");
  }

  const report::RunCollection collection =
      report::read_runs({folder}, {&tasks::kLanguageModelMeasures, &tasks::kClassifyImageMeasures});
  for (const report::RunData& run : collection.runs) show(run);
  report::compare_runs(collection.runs);
  for (const char* name : {"records.jsonl", "log.jsonl", "attacks.jsonl"}) {
    const fs::path file = folder / name;
    size_t num_damaged = 0;
    std::vector<Record> before;
    const bool is_file = fs::is_regular_file(file);
    reads(file, [&] {
      before = read_records(file, [&](const std::string& line) {
        require(line.starts_with(file.string() + ":"), "a damaged line is named");
        ++num_damaged;
      });
    });
    if (!is_file) continue;
    RecordWriter::truncate_after_step(file, INT64_MAX, [&](const std::string&) { --num_damaged; });
    require(num_damaged == 0 && read_records(file).size() == before.size(),
            "a resume leaves out damaged lines and no others");
    add_attacks(read_text(file));
  }
}

}  // namespace

std::vector<FuzzTarget> run_targets() {
  return {{"attacks", run_attacks, damage_lines},
          {"records", run_records, damage_lines},
          {"run_folder", run_folder},
          {"snapshot", run_snapshot, damage_tensors},
          {"state", run_state, damage_json}};
}

}  // namespace elliptical::test
