// SPDX-License-Identifier: MIT
#include "elliptical/measure/labels.h"

#include <array>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "elliptical/base/errors.h"
#include "elliptical/base/printable.h"

namespace elliptical::measure {
namespace {

const LabelValue* find(const Record& record, const std::string& name) {
  const auto found = record.labels.find(name);
  return found == record.labels.end() ? nullptr : &found->second;
}

template <class T>
std::optional<T> value_of(const Record& record, const std::string& name) {
  const LabelValue* label = find(record, name);
  const T* value = label == nullptr ? nullptr : std::get_if<T>(label);
  return value == nullptr ? std::nullopt : std::optional<T>(*value);
}

std::string number_text(double number, int digits) {
  // As JSON writes it: records and what is made of them spell a number alike.
  if (digits == kAllDigits && std::isfinite(number)) return nlohmann::json(number).dump();
  std::array<char, 40> text;
  std::snprintf(text.data(), text.size(), "%.*g", digits, number);
  return text.data();
}

}  // namespace

std::optional<std::string> text_label(const Record& record, const std::string& name) {
  return value_of<std::string>(record, name);
}

std::optional<int64_t> whole_label(const Record& record, const std::string& name) {
  return value_of<int64_t>(record, name);
}

std::optional<bool> flag_label(const Record& record, const std::string& name) {
  return value_of<bool>(record, name);
}

std::optional<double> number_label(const Record& record, const std::string& name) {
  if (const auto whole = whole_label(record, name)) return static_cast<double>(*whole);
  return value_of<double>(record, name);
}

template <class T>
T required_label(const Record& record, const std::string& name) {
  const std::optional<T> value = value_of<T>(record, name);
  if (!value) throw DataError("label " + printable(name) + " is missing or of another type");
  return *value;
}
template std::string required_label<std::string>(const Record&, const std::string&);
template int64_t required_label<int64_t>(const Record&, const std::string&);
template bool required_label<bool>(const Record&, const std::string&);
template double required_label<double>(const Record&, const std::string&);

std::string label_text(const LabelValue& value, int digits) {
  if (const auto* text = std::get_if<std::string>(&value)) return *text;
  if (const auto* whole = std::get_if<int64_t>(&value)) return std::to_string(*whole);
  if (const auto* flag = std::get_if<bool>(&value)) return *flag ? "true" : "false";
  return number_text(std::get<double>(value), digits);
}

std::string label_text(const Record& record, const std::string& name) {
  const LabelValue* label = find(record, name);
  return label == nullptr ? "" : label_text(*label);
}

const char* to_string(Source source) {
  switch (source) {
    case Source::kTraining:
      return "train";
    case Source::kEvaluation:
      return "eval";
    case Source::kAttack:
      return "attack";
    case Source::kOther:
      return "";
  }
  return "";
}

Source source_of(const Record& record) {
  const std::string text = label_text(record, "source");
  for (const Source source : {Source::kTraining, Source::kEvaluation, Source::kAttack}) {
    if (text == to_string(source)) return source;
  }
  return Source::kOther;
}

int64_t step_of(const Record& record) { return whole_label(record, "step").value_or(-1); }

bool is_block(const Record& record) { return record.labels.contains("block"); }

bool is_of_head(const Record& record) { return record.labels.contains("head"); }

bool is_of_class(const Record& record) { return record.labels.contains(kClass); }

bool is_part(const Record& record) {
  return is_block(record) || is_of_head(record) || is_of_class(record);
}

bool is_of_other_weights(const Record& record) { return record.labels.contains("weights"); }

}  // namespace elliptical::measure
