// SPDX-License-Identifier: MIT
#include "elliptical/base/options.h"

#include <algorithm>

#include "elliptical/base/errors.h"
#include "elliptical/base/names.h"

namespace elliptical {

namespace {

std::vector<std::string> names_of(const std::vector<OptionsEntry>& table) {
  std::vector<std::string> names;
  names.reserve(table.size());
  for (const OptionsEntry& entry : table) names.emplace_back(entry.name);
  return names;
}

const OptionsEntry& find_entry(const std::vector<OptionsEntry>& table, std::string_view name) {
  const auto found = std::find_if(table.begin(), table.end(),
                                  [&](const OptionsEntry& entry) { return entry.name == name; });
  if (found == table.end()) throw ConfigError("name: " + unknown_name(name, names_of(table)));
  return *found;
}

}  // namespace

std::string FieldList::full_key(std::string_view name) const { return prefix_ + std::string(name); }

ChosenOptions::ChosenOptions(const std::vector<OptionsEntry>& table, std::string_view name)
    : table_(&table), name_(name), options_(find_entry(table, name).make_options()) {}

ChosenOptions::ChosenOptions(const ChosenOptions& other)
    : table_(other.table_), name_(other.name_), options_(other.options_->clone()) {}

ChosenOptions& ChosenOptions::operator=(const ChosenOptions& other) {
  if (this != &other) *this = ChosenOptions(other);
  return *this;
}

void ChosenOptions::choose(const std::string& name) {
  if (name == name_) return;
  options_ = find_entry(*table_, name).make_options();
  name_ = name;
}

void ChosenOptions::visit(FieldList& fields) {
  fields.add_choice("name",
                    {.names = names_of(*table_),
                     .get = [this] { return name_; },
                     .set = [this](const std::string& name) { choose(name); },
                     .selects_fields = true},
                    "which one; decides which other keys there are");
  options_->visit(fields);
}

}  // namespace elliptical
