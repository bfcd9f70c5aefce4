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

namespace elliptical {
namespace {

using Json = nlohmann::ordered_json;

constexpr uint64_t kMaxFileBytes = uint64_t{1} << 32;

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

/// Calls `f(line number, line)` for each line that has its end.
template <class F>
void for_each_line(std::string_view text, F f) {
  int64_t number = 0;
  while (true) {
    const size_t end = text.find('\n');
    if (end == std::string_view::npos) return;
    f(++number, text.substr(0, end));
    text.remove_prefix(end + 1);
  }
}

Record parse_line(const std::filesystem::path& path, int64_t number, std::string_view line) {
  try {
    return parse_record(std::string(line));
  } catch (const DataError& error) {
    throw DataError(path.string() + ":" + std::to_string(number) + ": " + error.what());
  }
}

std::string read_if_there(const std::filesystem::path& path) {
  std::error_code ignored;
  return std::filesystem::exists(path, ignored) ? read_file(path, kMaxFileBytes) : std::string();
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
    const std::string text = read_if_there(path);
    const size_t last_end = text.rfind('\n');
    const size_t length = last_end == std::string::npos ? 0 : last_end + 1;
    const bool is_cut = length < text.size();
    if (is_cut && ::ftruncate(descriptor_, static_cast<off_t>(length)) != 0) fail(path_, "cut");
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
    descriptor_ = open_in_place(path_, O_WRONLY | O_APPEND);
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
  const std::string text = read_if_there(path);
  std::filesystem::path aside = path;
  aside += ".damaged";
  std::string kept, moved;
  for_each_line(text, [&](int64_t number, std::string_view line) {
    try {
      const Record record = parse_line(path, number, line);
      const auto label = record.labels.find("step");
      const int64_t* own =
          label == record.labels.end() ? nullptr : std::get_if<int64_t>(&label->second);
      if (own == nullptr || *own <= step) kept.append(line).push_back('\n');
    } catch (const DataError& error) {
      moved.append(line).push_back('\n');
      damaged(std::string(error.what()) + " (left out, moved to " + aside.string() + ")");
    }
  });
  if (!moved.empty()) write_file_atomically(aside, read_if_there(aside) + moved);
  if (kept.size() != text.size()) write_file_atomically(path, kept);
}

std::vector<Record> read_records(const std::filesystem::path& path) {
  return read_records(path, [](const std::string& what) { throw DataError(what); });
}

std::vector<Record> read_records(const std::filesystem::path& path,
                                 const std::function<void(const std::string&)>& damaged) {
  const std::string text = read_if_there(path);
  std::vector<Record> records;
  for_each_line(text, [&](int64_t number, std::string_view line) {
    try {
      records.push_back(parse_line(path, number, line));
    } catch (const DataError& error) {
      damaged(error.what());
    }
  });
  return records;
}

}  // namespace elliptical
