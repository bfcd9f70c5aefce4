// SPDX-License-Identifier: MIT
//
// Configurations as text: TOML that reads back as the same values, descriptions, differences.
#include <array>
#include <charconv>
#include <cmath>
#include <map>

#include "elliptical/base/config.h"
#include "elliptical/base/config_impl.h"
#include "elliptical/base/names.h"
#include "elliptical/base/option_limits.h"

namespace elliptical {
namespace {

std::string toml_text(bool flag) { return flag ? "true" : "false"; }
std::string toml_text(int64_t number) { return std::to_string(number); }
std::string toml_text(double number) { return number_text(number); }

std::string toml_text(const std::string& text) {
  std::string result = "\"";
  for (const char c : text) {
    const auto code = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      result += '\\';
      result += c;
    } else if (code < 0x20 || code == 0x7F) {
      result += "\\u00";
      result += "0123456789ABCDEF"[code >> 4];
      result += "0123456789ABCDEF"[code & 15];
    } else {
      result += c;
    }
  }
  return result + "\"";
}

template <class T>
std::string place_text(const T* value) {
  return toml_text(*value);
}
template <class T>
std::string place_text(const std::optional<T>* value) {
  return *value ? toml_text(**value) : "";
}
template <class T>
std::string place_text(const std::vector<T>* values) {
  std::vector<std::string> texts;
  for (const T& value : *values) texts.push_back(toml_text(value));
  return "[" + join(texts) + "]";
}
std::string place_text(const Choice& choice) { return toml_text(choice.get()); }

template <class T>
std::string place_type(const T*) {
  return type_text<T>();
}
template <class T>
std::string place_type(const std::optional<T>*) {
  return type_text<T>();
}
template <class T>
std::string place_type(const std::vector<T>*) {
  return "a list, each " + type_text<T>();
}
std::string place_type(const Choice& choice) { return "one of " + join(choice.names); }

template <class T>
constexpr double most = std::is_same_v<T, int64_t> ? kMostWhole : kMostNumber;
template <class T>
double most_of(const T*) {
  return most<T>;
}
template <class T>
double most_of(const std::optional<T>*) {
  return most<T>;
}
template <class T>
double most_of(const std::vector<T>*) {
  return most<T>;
}
double most_of(const Choice&) { return kMostNumber; }

std::string section_of(const std::string& key) {
  const size_t dot = key.rfind('.');
  return dot == std::string::npos ? "" : key.substr(0, dot);
}

/// Key -> value, in the order of the list.
std::vector<std::pair<std::string, std::string>> values_of(const ListFields& list) {
  std::vector<std::pair<std::string, std::string>> values;
  const FieldList fields = list();
  for (const Field& field : fields.fields()) {
    std::string text = value_text(field);
    if (!text.empty()) values.emplace_back(field.key, std::move(text));
  }
  return values;
}

/// A limit is mostly a whole number: "1", not "1.0".
std::string limit_text(double limit) {
  if (std::abs(limit) < 1e15 && limit == std::floor(limit)) {
    return std::to_string(static_cast<int64_t>(limit));
  }
  const std::string text = number_text(limit);
  return text.ends_with(".0") ? text.substr(0, text.size() - 2) : text;
}

}  // namespace

Limits limits_of(const Field& field) {
  const double end = std::visit([](const auto& place) { return most_of(place); }, field.place);
  Limits limits = field.limits;
  if (std::isinf(limits.low)) limits.low = -end;
  if (std::isinf(limits.high)) limits.high = end;
  return limits;
}

std::string limits_text(const Limits& limits) {
  // 2^63 is where whole numbers end anyway: nothing to be said.
  const auto is_said = [](double end) { return std::isfinite(end) && std::abs(end) != 0x1p63; };
  const bool low = is_said(limits.low), high = is_said(limits.high);
  if (low && high) {
    return std::string(" in ") + (limits.open_low ? "(" : "[") + limit_text(limits.low) + ", " +
           limit_text(limits.high) + (limits.open_high ? ")" : "]");
  }
  if (low) return (limits.open_low ? " > " : " >= ") + limit_text(limits.low);
  if (high) return (limits.open_high ? " < " : " <= ") + limit_text(limits.high);
  return "";
}

std::string field_type(const Field& field) {
  return std::visit([](const auto& place) { return place_type(place); }, field.place) +
         limits_text(field.limits);
}

std::string number_text(double number) {
  if (std::isnan(number)) return "nan";
  if (std::isinf(number)) return number > 0 ? "inf" : "-inf";
  std::array<char, 32> buffer;
  const auto result = std::to_chars(buffer.data(), buffer.data() + buffer.size(), number);
  std::string text(buffer.data(), result.ptr);
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

std::string value_text(const Field& field) {
  return std::visit([](const auto& place) { return place_text(place); }, field.place);
}

std::string to_toml(const ListFields& list) {
  // A section may be opened once only: its fields are gathered where the first of them stands.
  std::vector<std::string> order;
  std::map<std::string, std::string> sections;
  sections[""] = "";
  order.emplace_back("");
  for (const auto& [key, value] : values_of(list)) {
    const std::string section = section_of(key);
    const auto [place, is_new] = sections.try_emplace(section);
    if (is_new) order.push_back(section);
    const std::string name = section.empty() ? key : key.substr(section.size() + 1);
    place->second += name + " = " + value + "\n";
  }
  std::string text;
  for (const std::string& section : order) {
    const std::string& lines = sections[section];
    if (lines.empty()) continue;
    if (!text.empty()) text += "\n";
    if (!section.empty()) text += "[" + section + "]\n";
    text += lines;
  }
  return text;
}

std::vector<FieldText> describe(const ListFields& list) {
  std::vector<FieldText> texts;
  const FieldList fields = list();
  for (const Field& field : fields.fields()) {
    texts.push_back({field.key, field_type(field), value_text(field), field.help});
  }
  return texts;
}

std::vector<std::string> differences(const ListFields& now, const ListFields& before) {
  const auto old_values = values_of(before);
  std::map<std::string, std::string> old(old_values.begin(), old_values.end());
  std::vector<std::string> lines;
  for (const auto& [key, value] : values_of(now)) {
    const auto place = old.find(key);
    if (place == old.end()) {
      lines.push_back(key + ": " + value + ", was absent");
    } else {
      if (place->second != value) lines.push_back(key + ": " + value + ", was " + place->second);
      old.erase(place);
    }
  }
  for (const auto& [key, value] : old_values) {
    if (old.contains(key)) lines.push_back(key + ": absent, was " + value);
  }
  return lines;
}

}  // namespace elliptical
