// SPDX-License-Identifier: MIT
//
// Options are plain structs with defaults and one function that lists each field once:
//
//     struct ScheduleOptions {
//       int64_t warmup_steps = 2000;
//       double min_ratio = 0.0;
//       void visit(FieldList& fields) {
//         fields.add("warmup_steps", warmup_steps, "steps of linear warm-up", at_least(0));
//         fields.add("min_ratio", min_ratio, "last learning rate / peak", between(0, 1));
//       }
//     };
//
// Reading recipes, printing, `--set a.b=c`, documentation and comparing two configurations all work
// on that list (config.h). Defaults are stated once, in the struct.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace elliptical {

/// Numbers a field may hold; both ends belong to it unless `open_...` says otherwise.
struct Limits {
  double low = -std::numeric_limits<double>::infinity();
  double high = std::numeric_limits<double>::infinity();
  bool open_low = false, open_high = false;
};
inline Limits at_least(double low) { return {.low = low}; }
inline Limits above(double low) { return {.low = low, .open_low = true}; }
inline Limits between(double low, double high) { return {.low = low, .high = high}; }
/// [low, high)
inline Limits below(double low, double high) {
  return {.low = low, .high = high, .open_high = true};
}

/// A field whose value is one of a few names.
struct Choice {
  std::vector<std::string> names;
  std::function<std::string()> get;
  std::function<void(const std::string&)> set;  ///< called with one of `names` only
  /// Which fields there are depends on this one: it is read before the others.
  bool selects_fields = false;
};

/// One field of an options struct: where it lies and what is known about it.
struct Field {
  using Place = std::variant<bool*,
                             int64_t*,
                             double*,
                             std::string*,
                             std::optional<bool>*,  ///< absent: the key is left out
                             std::optional<int64_t>*,
                             std::optional<double>*,
                             std::vector<int64_t>*,
                             std::vector<double>*,
                             std::vector<std::string>*,
                             Choice>;
  std::string key;  ///< full path: "model.attention.metric.scope"
  Place place;
  std::string help;
  Limits limits;
};

/// What `visit` fills.
class FieldList {
 public:
  template <class T>
  void add(std::string_view name, T& value, std::string help, Limits limits = {}) {
    fields_.push_back({full_key(name), &value, std::move(help), limits});
  }

  void add_choice(std::string_view name, Choice choice, std::string help) {
    fields_.push_back({full_key(name), std::move(choice), std::move(help), {}});
  }

  /// An enumeration with names: `to_string` and its inverse.
  template <class Enum, class FromString>
  void add_enum(std::string_view name,
                Enum& value,
                std::vector<std::string> names,
                FromString from_string,
                std::string help) {
    add_choice(
        name,
        {.names = std::move(names),
         .get = [&value] { return std::string(to_string(value)); },
         .set = [&value, from_string](const std::string& text) { value = from_string(text); }},
        std::move(help));
  }

  /// The fields of `options` below `name`.
  template <class Options>
  void add_group(std::string_view name, Options& options) {
    const size_t length = prefix_.size();
    prefix_ += std::string(name) + ".";
    options.visit(*this);
    prefix_.resize(length);
  }

  const std::vector<Field>& fields() const { return fields_; }

 private:
  std::string full_key(std::string_view name) const;

  std::string prefix_;
  std::vector<Field> fields_;
};

/// Options whose type is chosen by name: those of an attention variant, of a task.
struct Options {
  virtual ~Options() = default;
  virtual void visit(FieldList& fields) = 0;
  virtual std::unique_ptr<Options> clone() const = 0;
};

/// An entry of a table of things to choose from: `{"elliptical", "softmax(q^T M k) v ...", make}`.
struct OptionsEntry {
  const char* name;
  const char* description;
  std::unique_ptr<Options> (*make_options)();
};

/// A name and the options that go with it. In a recipe:
///     [model.attention]
///     name = "elliptical"     # chooses
///     metric.scope = "prefix" # a field that only "elliptical" has
class ChosenOptions {
 public:
  ChosenOptions(const std::vector<OptionsEntry>& table, std::string_view name);
  ChosenOptions(const ChosenOptions& other);
  ChosenOptions& operator=(const ChosenOptions& other);
  ChosenOptions(ChosenOptions&&) noexcept = default;
  ChosenOptions& operator=(ChosenOptions&&) noexcept = default;
  ~ChosenOptions() = default;

  const std::string& name() const { return name_; }
  /// Changes the name; another name starts from that entry's defaults.
  void choose(const std::string& name);
  template <class T>
  T& get() {
    return dynamic_cast<T&>(*options_);
  }
  template <class T>
  const T& get() const {
    return dynamic_cast<const T&>(*options_);
  }
  Options& options() { return *options_; }

  void visit(FieldList& fields);

 private:
  const std::vector<OptionsEntry>* table_;
  std::string name_;
  std::unique_ptr<Options> options_;
};

}  // namespace elliptical
