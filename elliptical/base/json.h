// SPDX-License-Identifier: MIT
//
// The door for JSON that others may have written: state.json, metadata of snapshots, files of
// benches, answers of peers. What it gives has bounds: bytes, depth, number of values, no key
// twice. Everything nlohmann does with such a value by recursion (printing, copying, comparing) and
// everything that is quadratic in the number of keys (ordered_json) is then harmless. Fields are
// asked for by name and type, and what is wrong with one is told in a sentence with file and field.
// Lines of records, which are flat, have a reader of their own (base/records.h), and so has the
// header of safetensors.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace elliptical {

/// What no sane file of ours exceeds.
struct JsonLimits {
  size_t max_bytes = size_t{4} << 20;
  size_t max_depth = 16;
  size_t max_values = 100'000;
};

/// The value that `text` is. `subject`, a file and perhaps a part of it, stands in front of what is
/// wrong: "SUBJECT: must be JSON, is not (offset 17)". Throws DataError and nothing else.
template <class Json>
Json parse_json(std::string_view text, const std::string& subject, const JsonLimits& limits = {});

extern template nlohmann::json parse_json(std::string_view, const std::string&, const JsonLimits&);
extern template nlohmann::ordered_json parse_json(std::string_view,
                                                  const std::string&,
                                                  const JsonLimits&);

/// An object whose fields must be there, with their types; DataError otherwise: "SUBJECT: files.x
/// must be an object, is text". Refers to the value, which must outlive it.
class JsonFields {
 public:
  JsonFields(const nlohmann::ordered_json& value, const std::string& subject)
      : JsonFields(value, subject, "") {}

  bool has(const std::string& name) const { return value_.contains(name); }
  std::string text(const std::string& name) const;
  int64_t whole_number(const std::string& name) const;
  bool yes_or_no(const std::string& name) const;
  JsonFields object(const std::string& name) const;
  /// In the order of the file.
  std::vector<std::string> names() const;

 private:
  JsonFields(const nlohmann::ordered_json& value, const std::string& subject, std::string path);
  [[noreturn]] void refuse(const std::string& name, const char* must) const;
  std::string full_name(const std::string& name) const;

  const nlohmann::ordered_json& value_;
  std::string subject_, path_;
};

}  // namespace elliptical
