// SPDX-License-Identifier: MIT
#include "elliptical/base/json.h"

#include <limits>
#include <set>
#include <type_traits>
#include <utility>
#include <vector>

#include "elliptical/base/errors.h"
#include "elliptical/base/printable.h"

namespace elliptical {
namespace {

/// A piece of foreign text in a message.
std::string shown(std::string_view text) {
  constexpr size_t kMaxShown = 60;
  return printable(text.substr(0, kMaxShown)) + (text.size() > kMaxShown ? "..." : "");
}

/// Builds a value from the events of the parser and refuses, while it grows, what is beyond limits.
template <class Json>
class BoundedBuilder final : public nlohmann::json_sax<Json> {
 public:
  explicit BoundedBuilder(const JsonLimits& limits) : limits_(limits) {}

  Json result;
  std::string error;

  bool null() override { return add(Json(nullptr)); }
  bool boolean(bool value) override { return add(Json(value)); }
  bool number_integer(typename Json::number_integer_t value) override { return add(Json(value)); }
  bool number_unsigned(typename Json::number_unsigned_t value) override { return add(Json(value)); }
  bool number_float(typename Json::number_float_t value, const std::string&) override {
    return add(Json(value));
  }
  bool string(std::string& value) override { return add(Json(std::move(value))); }
  bool binary(typename Json::binary_t&) override { return refuse("must hold text and numbers"); }
  bool start_object(size_t) override { return open(Json::object()); }
  bool start_array(size_t) override { return open(Json::array()); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }

  bool key(std::string& name) override {
    if (!open_.back().keys.insert(name).second) {
      return refuse("key \"" + shown(name) + "\" must stand there once, comes twice");
    }
    open_.back().key = std::move(name);
    return true;
  }

  bool parse_error(size_t position,
                   const std::string&,
                   const nlohmann::detail::exception&) override {
    return refuse("must be JSON, is not (offset " + std::to_string(position) + ")");
  }

 private:
  struct Open {
    Json value;
    std::string key;  ///< of the member that comes next
    std::set<std::string> keys;
  };

  bool refuse(const std::string& why) {
    if (error.empty()) error = why;
    return false;
  }

  bool count_value() {
    if (++num_values_ <= limits_.max_values) return true;
    return refuse("must hold at most " + std::to_string(limits_.max_values) +
                  " values, holds more");
  }

  bool open(Json value) {
    if (open_.size() == limits_.max_depth) {
      return refuse("must nest at most " + std::to_string(limits_.max_depth) +
                    " deep, nests deeper");
    }
    if (!count_value()) return false;
    open_.push_back({.value = std::move(value)});
    return true;
  }

  bool close() {
    Json value = std::move(open_.back().value);
    open_.pop_back();
    put(std::move(value));
    return true;
  }

  bool add(Json value) {
    if (!count_value()) return false;
    put(std::move(value));
    return true;
  }

  void put(Json value) {
    if (open_.empty()) {
      result = std::move(value);
    } else if (Open& parent = open_.back(); parent.value.is_array()) {
      parent.value.push_back(std::move(value));
    } else if constexpr (std::is_same_v<Json, nlohmann::ordered_json>) {
      // Its own insertion looks at every key that is there already; `keys` has done that.
      parent.value.template get_ref<typename Json::object_t&>().push_back(
          {std::move(parent.key), std::move(value)});
    } else {
      parent.value[parent.key] = std::move(value);
    }
  }

  const JsonLimits& limits_;
  std::vector<Open> open_;
  size_t num_values_ = 0;
};

const char* kind(const nlohmann::ordered_json& value) {
  if (value.is_null()) return "null";
  if (value.is_boolean()) return "true or false";
  if (value.is_number_integer()) return "a whole number";
  if (value.is_number()) return "a fraction";
  if (value.is_string()) return "text";
  return value.is_array() ? "a list" : "an object";
}

}  // namespace

template <class Json>
Json parse_json(std::string_view text, const std::string& subject, const JsonLimits& limits) {
  if (text.size() > limits.max_bytes) {
    throw DataError(subject + ": must have at most " + std::to_string(limits.max_bytes) +
                    " bytes, has " + std::to_string(text.size()));
  }
  BoundedBuilder<Json> builder(limits);
  const bool done = Json::sax_parse(text.begin(), text.end(), &builder);
  if (!done || !builder.error.empty()) throw DataError(subject + ": " + builder.error);
  return std::move(builder.result);
}

template nlohmann::json parse_json(std::string_view, const std::string&, const JsonLimits&);
template nlohmann::ordered_json parse_json(std::string_view, const std::string&, const JsonLimits&);

JsonFields::JsonFields(const nlohmann::ordered_json& value,
                       const std::string& subject,
                       std::string path)
    : value_(value), subject_(subject), path_(std::move(path)) {
  if (value_.is_object()) return;
  throw DataError(subject_ + ": " + (path_.empty() ? "" : path_ + " ") +
                  "must be a JSON object, is " + kind(value_));
}

std::string JsonFields::full_name(const std::string& name) const {
  return (path_.empty() ? "" : path_ + ".") + shown(name);
}

void JsonFields::refuse(const std::string& name, const char* must) const {
  const auto found = value_.find(name);
  throw DataError(subject_ + ": " + full_name(name) + " must be " + must + ", is " +
                  (found == value_.end() ? "missing" : kind(*found)));
}

std::string JsonFields::text(const std::string& name) const {
  const auto found = value_.find(name);
  if (found == value_.end() || !found->is_string()) refuse(name, "text");
  return found->get<std::string>();
}

int64_t JsonFields::whole_number(const std::string& name) const {
  const auto found = value_.find(name);
  // Fractions and true would be converted in silence.
  if (found == value_.end() || !found->is_number_integer()) refuse(name, "a whole number");
  constexpr auto kLargest = static_cast<uint64_t>(std::numeric_limits<int64_t>::max());
  if (found->is_number_unsigned() && found->get<uint64_t>() > kLargest) {
    throw DataError(subject_ + ": " + full_name(name) + " must be at most " +
                    std::to_string(kLargest) + ", is " + std::to_string(found->get<uint64_t>()));
  }
  return found->get<int64_t>();
}

bool JsonFields::yes_or_no(const std::string& name) const {
  const auto found = value_.find(name);
  if (found == value_.end() || !found->is_boolean()) refuse(name, "true or false");
  return found->get<bool>();
}

JsonFields JsonFields::object(const std::string& name) const {
  const auto found = value_.find(name);
  if (found == value_.end()) refuse(name, "a JSON object");
  return {*found, subject_, full_name(name)};
}

std::vector<std::string> JsonFields::names() const {
  std::vector<std::string> result;
  for (const auto& member : value_.items()) result.push_back(member.key());
  return result;
}

}  // namespace elliptical
