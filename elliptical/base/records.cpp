// SPDX-License-Identifier: MIT
#include "elliptical/base/records.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>
#include <string_view>
#include <system_error>
#include <utility>

#include "elliptical/base/errors.h"
#include "elliptical/base/files.h"
#include "elliptical/base/lines.h"

namespace elliptical {
namespace {

using Json = nlohmann::ordered_json;

// What the records of one file may take, some millions of them.
constexpr uint64_t kMaxRecordMemory = uint64_t{4} << 30;

Json to_json(double value) {
  if (std::isfinite(value)) return value;
  if (std::isnan(value)) return "nan";
  return value > 0 ? "inf" : "-inf";
}

std::optional<double> non_finite(std::string_view text) {
  constexpr double inf = std::numeric_limits<double>::infinity();
  if (text == "nan") return std::numeric_limits<double>::quiet_NaN();
  if (text == "inf") return inf;
  if (text == "-inf") return -inf;
  return std::nullopt;
}

/// Takes the events of one line. Only a flat object of scalars is a record, so that nothing in a
/// line nests, and no key comes twice.
class RecordReader final : public nlohmann::json_sax<nlohmann::json> {
 public:
  Record record;
  std::string error;

  bool null() override { return refuse("null is no value"); }
  bool boolean(bool value) override { return set(value); }
  bool number_integer(number_integer_t value) override { return set(int64_t{value}); }
  bool number_unsigned(number_unsigned_t value) override {
    if (value > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) {
      return refuse("whole number too large");
    }
    return set(static_cast<int64_t>(value));
  }
  bool number_float(number_float_t value, const string_t&) override { return set(value); }
  bool string(string_t& value) override { return set(value); }
  bool binary(binary_t&) override { return refuse("binary value"); }
  bool start_object(size_t) override {
    if (started_) return refuse("nested value");
    started_ = true;
    return true;
  }
  bool key(string_t& name) override {
    key_ = name;
    return true;
  }
  bool end_object() override {
    if (!has_metric_ || !has_value_ || !has_count_) {
      return refuse("must have metric, value and count");
    }
    return true;
  }
  bool start_array(size_t) override { return refuse("nested value"); }
  bool end_array() override { return refuse("nested value"); }
  bool parse_error(size_t position,
                   const std::string&,
                   const nlohmann::detail::exception&) override {
    return refuse("no JSON (column " + std::to_string(position) + ")");
  }

 private:
  bool refuse(const std::string& why) {
    if (error.empty()) error = why;
    return false;
  }

  bool once(bool& seen) {
    if (seen) return refuse("key \"" + key_ + "\" comes twice");
    seen = true;
    return true;
  }

  bool set(LabelValue value) {
    if (!started_) return refuse("must be an object");
    if (key_ == "metric") {
      const auto* text = std::get_if<std::string>(&value);
      if (text == nullptr) return refuse("metric must be text");
      record.metric = *text;
      return once(has_metric_);
    }
    if (key_ == "count") {
      const auto* count = std::get_if<int64_t>(&value);
      if (count == nullptr) return refuse("count must be a whole number");
      record.count = *count;
      return once(has_count_);
    }
    if (key_ == "value") return set_value(value) && once(has_value_);
    if (!record.labels.emplace(key_, std::move(value)).second) {
      return refuse("key \"" + key_ + "\" comes twice");
    }
    return true;
  }

  bool set_value(const LabelValue& value) {
    if (const auto* number = std::get_if<double>(&value)) {
      record.value = *number;
      return true;
    }
    if (const auto* number = std::get_if<int64_t>(&value)) {
      record.value = static_cast<double>(*number);
      return true;
    }
    const auto* text = std::get_if<std::string>(&value);
    const auto number = text == nullptr ? std::nullopt : non_finite(*text);
    if (!number) return refuse("value must be a number");
    record.value = *number;
    return true;
  }

  bool started_ = false, has_metric_ = false, has_value_ = false, has_count_ = false;
  std::string key_;
};

Record parse_line(const std::filesystem::path& path, const Line& line) {
  const std::string place = path.string() + ":" + std::to_string(line.number) + ": ";
  if (!line.is_whole) {
    throw DataError(place + "record: must have at most " + std::to_string(kMaxLineBytes) +
                    " bytes, has more");
  }
  try {
    return parse_record(std::string(line.text));
  } catch (const DataError& error) {
    throw DataError(place + error.what());
  }
}

/// About what it takes, from above: nodes of the map and their texts.
uint64_t memory_of(const Record& record) {
  constexpr uint64_t kNodeBytes = 128;
  uint64_t bytes = sizeof(Record) + record.metric.capacity();
  for (const auto& [name, label] : record.labels) {
    const auto* text = std::get_if<std::string>(&label);
    bytes += kNodeBytes + name.capacity() + (text == nullptr ? 0 : text->capacity());
  }
  return bytes;
}

[[noreturn]] void fail(const std::filesystem::path& path, const char* action) {
  const int code = errno;
  throw FileError(
      path.string() + ": can not " + action + ": " + std::generic_category().message(code), code);
}

/// A file system without locks has none: appending is one write each anyway.
void lock(int descriptor) {
  while (::flock(descriptor, LOCK_EX) != 0 && errno == EINTR) continue;
}

struct Unlock {
  const int& descriptor;
  ~Unlock() {
    if (descriptor >= 0) ::flock(descriptor, LOCK_UN);
  }
};

/// Whether the open file is still the one of that name.
bool is_at(const std::filesystem::path& path, int descriptor) {
  struct stat named{}, opened{};
  if (::fstat(descriptor, &opened) != 0) return true;  // nothing better is known
  return ::stat(path.c_str(), &named) == 0 && named.st_ino == opened.st_ino &&
         named.st_dev == opened.st_dev;
}

bool is_record(const std::filesystem::path& path, const Line& line) {
  try {
    parse_line(path, line);
    return true;
  } catch (const DataError&) {
    return false;
  }
}

/// Whether its label `step` is above `step`.
bool is_after(int64_t step, const Record& record) {
  const auto label = record.labels.find("step");
  const int64_t* own =
      label == record.labels.end() ? nullptr : std::get_if<int64_t>(&label->second);
  return own != nullptr && *own > step;
}

/// A file that takes the place of another when it is complete, written in large pieces.
class LinesCopy {
 public:
  explicit LinesCopy(const std::filesystem::path& path) : replacement_(path) {}
  void add(std::string_view text) {
    pending_ += text;
    if (pending_.size() > kMaxLineBytes) flush();
  }
  void add_line(std::string_view line) {
    add(line);
    add("\n");
  }
  void finish() {
    flush();
    replacement_.finish();
  }

 private:
  void flush() {
    replacement_.file().write(pending_);
    pending_.clear();
  }

  FileReplacement replacement_;
  std::string pending_;
};

struct LinesLength {
  off_t length = 0;  ///< up to and with the last line end
  bool has_more = false;
};

/// Looks from the end: files of records grow long, their last line does not.
LinesLength length_of_lines(const std::filesystem::path& path, int descriptor) {
  const off_t whole = ::lseek(descriptor, 0, SEEK_END);
  if (whole < 0) fail(path, "examine");
  std::string piece(size_t{1} << 16, '\0');
  for (off_t end = whole; end > 0;) {
    const off_t begin = std::max<off_t>(0, end - static_cast<off_t>(piece.size()));
    const ssize_t count =
        ::pread(descriptor, piece.data(), static_cast<size_t>(end - begin), begin);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) fail(path, "read");
    if (count < end - begin) return length_of_lines(path, descriptor);  // it became shorter
    const size_t last = std::string_view(piece).substr(0, static_cast<size_t>(count)).rfind('\n');
    if (last != std::string_view::npos) {
      const off_t length = begin + static_cast<off_t>(last) + 1;
      return {length, length < whole};
    }
    end = begin;
  }
  return {0, whole > 0};
}

}  // namespace

std::string to_json_line(const Record& record) {
  Json json;
  json["metric"] = record.metric;
  json["value"] = to_json(record.value);
  json["count"] = record.count;
  for (const auto& [name, label] : record.labels) {
    if (json.contains(name)) throw std::invalid_argument("record: label may not be " + name);
    json[name] = std::visit([](const auto& value) { return Json(value); }, label);
    if (const auto* number = std::get_if<double>(&label)) json[name] = to_json(*number);
  }
  // Text that is no UTF-8 (a path) is written with the replacement character.
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Record parse_record(const std::string& line) {
  RecordReader reader;
  const bool done = nlohmann::json::sax_parse(line, &reader);
  if (!done || !reader.error.empty()) throw DataError("record: " + reader.error);
  return std::move(reader.record);
}

RecordWriter::RecordWriter(const std::filesystem::path& path) : path_(path) {
  open_locked();
  try {
    const Unlock unlock{descriptor_};
    const auto [length, has_more] = length_of_lines(path_, descriptor_);
    if (has_more && ::ftruncate(descriptor_, length) != 0) fail(path_, "cut");
  } catch (...) {
    ::close(descriptor_);
    throw;
  }
}

RecordWriter::~RecordWriter() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

/// Opens what is at the path, and locks it: while one waits for the lock, another file may have
/// taken its place.
void RecordWriter::open_locked() {
  constexpr int kAttempts = 100;
  for (int attempt = 1;; ++attempt) {
    descriptor_ = open_in_place(path_, O_RDWR | O_APPEND);
    lock(descriptor_);
    if (is_at(path_, descriptor_) || attempt == kAttempts) return;
    ::close(std::exchange(descriptor_, -1));
  }
}

void RecordWriter::append(const Record& record) {
  const std::string line = to_json_line(record) + "\n";
  lock(descriptor_);
  if (!is_at(path_, descriptor_)) {
    ::close(std::exchange(descriptor_, -1));
    open_locked();
  }
  const Unlock unlock{descriptor_};
  const off_t start = ::lseek(descriptor_, 0, SEEK_END);
  size_t written = 0;
  while (written < line.size()) {
    const ssize_t count = ::write(descriptor_, line.data() + written, line.size() - written);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) {
      const int code = errno;
      // Half a line must not stay: the next one would be glued to it.
      if (written > 0 && ::ftruncate(descriptor_, start) != 0) fail(path_, "cut");
      errno = code;
      fail(path_, "write");
    }
    written += static_cast<size_t>(count);
  }
}

void RecordWriter::sync() {
  if (::fsync(descriptor_) != 0) fail(path_, "sync");
}

void RecordWriter::truncate_after_step(const std::filesystem::path& path,
                                       int64_t step,
                                       const std::function<void(const std::string&)>& damaged) {
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored)) return;
  RecordWriter writer(path);
  lock(writer.descriptor_);  // until the new file is in place
  std::filesystem::path aside = path;
  aside += ".damaged";
  // Twice through the file: the first time says whether anything is to be changed at all, which on
  // a full disk it should not be without need.
  bool any_damaged = false, any_later = false;
  for_each_line(path, [&](const Line& line) {
    try {
      any_later |= is_after(step, parse_line(path, line));
    } catch (const DataError& error) {
      any_damaged = true;
      damaged(std::string(error.what()) + " (left out, moved to " + aside.string() + ")");
    }
  });
  if (any_damaged) {
    LinesCopy moved(aside);
    // A link there is replaced, neither read nor written through.
    if (std::filesystem::is_regular_file(std::filesystem::symlink_status(aside, ignored))) {
      read_pieces(aside, [&](std::string_view piece) { moved.add(piece); });
    }
    for_each_line(path, [&](const Line& line) {
      if (!is_record(path, line)) moved.add_line(line.text);
    });
    moved.finish();
  }
  if (!any_damaged && !any_later) return;
  LinesCopy kept(path);
  for_each_line(path, [&](const Line& line) {
    if (is_record(path, line) && !is_after(step, parse_line(path, line))) kept.add_line(line.text);
  });
  kept.finish();
}

std::vector<Record> read_records(const std::filesystem::path& path) {
  return read_records(path, [](const std::string& what) { throw DataError(what); });
}

std::vector<Record> read_records(const std::filesystem::path& path,
                                 const std::function<void(const std::string&)>& damaged) {
  std::vector<Record> records;
  uint64_t memory = 0;
  for_each_line(path, [&](const Line& line) {
    try {
      records.push_back(parse_line(path, line));
    } catch (const DataError& error) {
      return damaged(error.what());
    }
    memory += memory_of(records.back());
    if (memory > kMaxRecordMemory) {
      throw DataError(path.string() + ": its records must fit " +
                      std::to_string(kMaxRecordMemory >> 30) + " GiB of memory, need more");
    }
  });
  return records;
}

}  // namespace elliptical
