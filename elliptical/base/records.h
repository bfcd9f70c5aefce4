// SPDX-License-Identifier: MIT
//
// Records: one measured number a line, as JSON, appended to `records.jsonl` of a run. They are the
// only source of tables and reports, so everything that is needed to understand a number is in
// its record. Losses of single steps go to `log.jsonl` in the same form.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <variant>
#include <vector>

namespace elliptical {

/// A value of a label: text, whole number, number, or yes/no.
using LabelValue = std::variant<bool, int64_t, double, std::string>;

struct Record {
  std::string metric;  ///< what was measured: "perplexity"
  double value = 0;    ///< may be infinite or not a number
  int64_t count = 0;   ///< over how many things: scored tokens, pictures
  /// What it was measured on: run, task, split, attention, perturbation, seed, step, profile,
  /// leaks_future, ... in alphabetical order.
  std::map<std::string, LabelValue> labels;
};

/// One line, without its end: {"metric":"perplexity","value":31.5,"count":200,"split":"test"}, so
/// no label may be called metric, value or count. Numbers that JSON has no word for are strings:
/// "nan", "inf", "-inf".
std::string to_json_line(const Record& record);

/// The record of a line; DataError when it is none.
Record parse_record(const std::string& line);

/// Appends to a file that may have been cut anywhere by an earlier death: what follows the last
/// complete line is dropped first. Each record is one write. Several processes may append to one
/// file, also while another one drops records: they wait for each other, line by line, and a file
/// that took the place of the one that was opened is the one that is written.
class RecordWriter {
 public:
  explicit RecordWriter(const std::filesystem::path& path);
  ~RecordWriter();
  RecordWriter(const RecordWriter&) = delete;
  RecordWriter& operator=(const RecordWriter&) = delete;
  void append(const Record& record);
  void sync();  ///< what was appended survives a loss of power
  /// Drops every record whose label `step` is above `step`: they come again after a resume. Lines
  /// that can not be read are moved to `FILE.damaged`, and `damaged` is told of each.
  static void truncate_after_step(const std::filesystem::path& path,
                                  int64_t step,
                                  const std::function<void(const std::string&)>& damaged);

 private:
  void open_locked();
  std::filesystem::path path_;
  int descriptor_ = -1;
};

/// All complete records of a file. A cut last line is left out; any other damaged line is a
/// DataError with its number. A missing file has none.
std::vector<Record> read_records(const std::filesystem::path& path);

/// The same, but a damaged line is told to `damaged`, as "FILE:LINE: what is wrong", and left out.
std::vector<Record> read_records(const std::filesystem::path& path,
                                 const std::function<void(const std::string&)>& damaged);

}  // namespace elliptical
