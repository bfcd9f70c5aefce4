// SPDX-License-Identifier: MIT
//
// Tables of things with names: attentions, models, tasks, attacks, corruptions, data sets. An entry
// has a `name`; one that goes with options has a `description` and `make_options`, too.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "elliptical/base/names.h"
#include "elliptical/base/options.h"

namespace elliptical {

/// For `make_options` of an entry.
template <class T>
std::unique_ptr<Options> make_options() {
  return std::make_unique<T>();
}

/// The entry of this name; null: there is none.
template <class Table>
const typename Table::value_type* find_entry(const Table& table, std::string_view name) {
  for (const auto& entry : table) {
    if (entry.name == name) return &entry;
  }
  return nullptr;
}

/// The same, but throws `Error`: "SUBJECT: unknown "fgo", did you mean "fog"?ADVICE".
template <class Error, class Table>
const typename Table::value_type& require_entry(const Table& table,
                                                std::string_view name,
                                                const std::string& subject,
                                                const std::string& advice = "") {
  if (const auto* entry = find_entry(table, name)) return *entry;
  std::vector<std::string> names;
  for (const auto& entry : table) names.emplace_back(entry.name);
  throw Error(subject + ": " + unknown_name(name, names) + advice);
}

/// What a recipe can choose from (ChosenOptions).
template <class Table>
std::vector<OptionsEntry> choices_of(const Table& table) {
  std::vector<OptionsEntry> choices;
  for (const auto& entry : table) {
    choices.push_back({entry.name, entry.description, entry.make_options});
  }
  return choices;
}

}  // namespace elliptical
