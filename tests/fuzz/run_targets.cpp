// SPDX-License-Identifier: MIT
//
// Fuzz targets for what a run folder holds: state.json, words, lines of records and attacks,
// snapshots, and a whole folder that is damaged as its input says. Damage gives the next older
// checkpoint or an error of the promised type that names the file; never a crash or memory beyond
// the bound of the fuzzer.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>

#include "elliptical/base/checkpoint_folder.h"
#include "elliptical/base/checkpoint_state.h"
#include "elliptical/base/errors.h"
#include "elliptical/base/json.h"
#include "elliptical/base/lines.h"
#include "elliptical/base/records.h"
#include "elliptical/data/text/vocabulary.h"
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
#include "tests/fuzz/scratch.h"
#include "tests/fuzz/targets.h"

namespace elliptical::test {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

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

void run_state(std::string_view bytes) {
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

void run_attacks(std::string_view bytes) {
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
  const fs::path file = scratch() / "snapshot.safetensors";
  std::ofstream(file, std::ios::binary) << bytes;
  report::RunData run;
  run.folder = scratch();
  run.snapshot = run.attack_pictures = file;
  show(run);
}

/// Words as a checkpoint of a language model has them.
void run_vocabulary(std::string_view bytes) {
  const fs::path file = "run/checkpoints/step-2/vocabulary.txt";
  reads(file, [&] {
    const data::Vocabulary words = data::Vocabulary::from_text(bytes, file.string());
    const std::string text = words.to_text();
    require(data::Vocabulary::from_text(text, "v").to_text() == text, "a vocabulary reads back");
    for (int32_t id = 0; id < words.size(); ++id) {
      require(words.id(words.word(id)) == id, "words and ids belong together");
    }
    for (const int32_t id : data::encode(bytes, words)) {
      require(id >= 0 && id < words.size(), "ids are in the vocabulary");
    }
  });
}

void run_folder(std::string_view bytes) {
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
  if (newest) {
    const fs::path words = checkpoints / checkpoint_name(*newest) / kVocabularyFile;
    if (fs::is_regular_file(words)) run_vocabulary(read_text(words));
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
    run_attacks(read_text(file));
  }
}

}  // namespace

std::vector<FuzzTarget> run_targets() {
  return {{"attacks", run_attacks, damage_lines},
          {"records", run_records, damage_lines},
          {"run_folder", run_folder},
          {"snapshot", run_snapshot, damage_tensors},
          {"state", run_state, damage_json},
          {"vocabulary", run_vocabulary, damage_lines}};
}

}  // namespace elliptical::test
