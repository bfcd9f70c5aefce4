// SPDX-License-Identifier: MIT
//
// Recipes and overrides become assignments, and assignments are applied alike: first the choices
// that decide which fields there are, as often as they reveal new ones, then everything else.
#include "elliptical/base/config.h"

// What a hostile recipe could nest is destroyed recursively: values may nest 8 deep, and a line
// may hold 200 dots (of keys). Some wrong recipes get past toml++'s own checks down to its
// assertions: those throw here, in every build.
#undef NDEBUG
#include <stdexcept>
namespace elliptical {
[[noreturn]] static void fail_assertion(const char* what) { throw std::logic_error(what); }
}  // namespace elliptical
#define TOML_ASSERT(expr) ((expr) ? void() : ::elliptical::fail_assertion(#expr))
#define TOML_MAX_NESTED_VALUES 8
#include <toml++/toml.h>

#include <algorithm>
#include <cmath>
#include <tuple>
#include <utility>

#include "elliptical/base/config_impl.h"
#include "elliptical/base/errors.h"
#include "elliptical/base/files.h"
#include "elliptical/base/names.h"
#include "elliptical/base/utf8.h"

namespace elliptical {
namespace {

constexpr uint64_t kMaxRecipeBytes = 1 << 20;
constexpr int kMaxDotsPerLine = 200;

/// A value for a key, and what to say before an error about it.
struct Assignment {
  std::string key, where;
  /// Gives the value to the field; returns what is wrong with it, or "".
  std::function<std::string(const Field&)> apply;
};

std::string given(const toml::node& node) {
  if (const auto* text = node.as_string()) return "text \"" + text->get() + "\"";
  if (const auto* number = node.as_integer()) return std::to_string(number->get());
  if (const auto* number = node.as_floating_point()) return number_text(number->get());
  if (const auto* flag = node.as_boolean()) return flag->get() ? "true" : "false";
  if (node.is_array()) return "a list";
  if (node.is_table()) return "a table";
  return "a date or time";
}

/// The value of a node as a T of the options, checked against `limits`; otherwise what is wrong.
template <class T>
std::string read_scalar(const toml::node& node, const Limits& limits, T& to) {
  const auto wrong = [&] {
    return "must be " + type_text<T>() + limits_text(limits) + ", got " + given(node);
  };
  if constexpr (std::is_same_v<T, bool>) {
    if (!node.is_boolean()) return wrong();
    to = node.as_boolean()->get();
  } else if constexpr (std::is_same_v<T, std::string>) {
    if (!node.is_string()) return wrong();
    to = node.as_string()->get();
  } else {
    const bool whole = node.is_integer();
    if (!whole && (std::is_same_v<T, int64_t> || !node.is_floating_point())) return wrong();
    const double number =
        whole ? static_cast<double>(node.as_integer()->get()) : node.as_floating_point()->get();
    const bool inside = std::isfinite(number) &&
                        (limits.open_low ? number > limits.low : number >= limits.low) &&
                        (limits.open_high ? number < limits.high : number <= limits.high);
    if (!inside) return wrong();
    if constexpr (std::is_same_v<T, int64_t>) {
      to = node.as_integer()->get();
    } else {
      to = number;
    }
  }
  return "";
}

template <class T>
std::string read_node(const toml::node& node, const Limits& limits, T* to) {
  return read_scalar(node, limits, *to);
}

template <class T>
std::string read_node(const toml::node& node, const Limits& limits, std::optional<T>* to) {
  T value{};
  const std::string error = read_scalar(node, limits, value);
  if (error.empty()) *to = value;
  return error;
}

template <class T>
std::string read_node(const toml::node& node, const Limits& limits, std::vector<T>* to) {
  const toml::array* list = node.as_array();
  if (list == nullptr) return "must be a list, got " + given(node);
  std::vector<T> values;
  for (const toml::node& element : *list) {
    T value{};
    const std::string error = read_scalar(element, limits, value);
    if (!error.empty()) return "each element " + error;
    values.push_back(std::move(value));
  }
  *to = std::move(values);
  return "";
}

std::string read_node(const toml::node& node, const Limits&, const Choice& choice) {
  if (!node.is_string()) return "must be one of " + join(choice.names) + ", got " + given(node);
  const std::string& name = node.as_string()->get();
  if (std::find(choice.names.begin(), choice.names.end(), name) == choice.names.end()) {
    return unknown_name(name, choice.names);
  }
  choice.set(name);
  return "";
}

std::string assign(const Field& field, const toml::node& node) {
  return std::visit([&](const auto& place) { return read_node(node, field.limits, place); },
                    field.place);
}

const Field* find_field(const FieldList& list, const std::string& key) {
  for (const Field& field : list.fields()) {
    if (field.key == key) return &field;
  }
  return nullptr;
}

/// `unknown key "model.widht", did you mean "model.width"?`
std::string unknown_key(const std::string& key, const FieldList& list) {
  const auto last_part = [](const std::string& text) { return text.substr(text.rfind('.') + 1); };
  const auto section = [](const std::string& text) {
    const size_t dot = text.rfind('.');
    return dot == std::string::npos ? std::string() : text.substr(0, dot + 1);
  };
  const std::string* nearest = nullptr;
  int least = 0;
  std::vector<std::string> neighbours, all;
  for (const Field& field : list.fields()) {
    // The right name in the wrong section is one mistake.
    const int distance = std::min(edit_distance(key, field.key),
                                  1 + edit_distance(last_part(key), last_part(field.key)));
    if (nearest == nullptr || distance < least) {
      nearest = &field.key;
      least = distance;
    }
    all.push_back(field.key);
    if (section(field.key) == section(key)) neighbours.push_back(field.key);
  }
  const std::string text = "unknown key \"" + key + "\"";
  if (nearest != nullptr && least * 2 <= static_cast<int>(last_part(*nearest).size())) {
    return text + ", did you mean \"" + *nearest + "\"?";
  }
  return text + ", known: " + join(neighbours.empty() ? all : neighbours);
}

void apply(const Assignment& assignment, const Field& field) {
  const std::string error = assignment.apply(field);
  if (!error.empty()) throw ConfigError(assignment.where + field.key + ": " + error);
}

void apply_all(const std::vector<Assignment>& assignments, const ListFields& list) {
  std::vector<bool> done(assignments.size(), false);
  for (bool again = true; again;) {
    again = false;
    for (size_t i = 0; i < assignments.size(); ++i) {
      if (done[i]) continue;
      const FieldList fields = list();
      const Field* field = find_field(fields, assignments[i].key);
      const auto* choice = field == nullptr ? nullptr : std::get_if<Choice>(&field->place);
      if (choice == nullptr || !choice->selects_fields) continue;
      apply(assignments[i], *field);
      done[i] = again = true;
    }
  }
  const FieldList fields = list();
  for (size_t i = 0; i < assignments.size(); ++i) {
    if (done[i]) continue;
    const Field* field = find_field(fields, assignments[i].key);
    if (field == nullptr) {
      throw ConfigError(assignments[i].where + unknown_key(assignments[i].key, fields));
    }
    apply(assignments[i], *field);
  }
}

/// Where in a file: for sorting and for messages.
struct Leaf {
  toml::source_position position;
  std::string key;
  const toml::node* node;
};

void collect_leaves(const toml::table& table,
                    const std::string& prefix,
                    std::vector<Leaf>& leaves) {
  for (const auto& [name, node] : table) {
    // A quoted key with a dot in it is another key than one in a section.
    const bool plain = name.str().find('.') == std::string_view::npos;
    const std::string key =
        prefix + (plain ? std::string(name.str()) : "'" + std::string(name.str()) + "'");
    const toml::table* inner = node.as_table();
    if (inner != nullptr && !inner->empty()) {
      collect_leaves(*inner, key + ".", leaves);
    } else {
      leaves.push_back({name.source().begin, key, &node});
    }
  }
}

std::string at_line(const std::filesystem::path& name, const toml::source_position& position) {
  return name.string() + ":" + std::to_string(position.line) + ": ";
}

toml::table parse(const std::string& text, const std::filesystem::path& name) {
  int line = 1, dots = 0;
  for (const char c : text) {
    if (c == '\n') {
      ++line;
      dots = 0;
    } else if (c == '.' && ++dots > kMaxDotsPerLine) {
      throw ConfigError(name.string() + ":" + std::to_string(line) + ": a line may hold at most " +
                        std::to_string(kMaxDotsPerLine) + " dots");
    }
  }
  try {
    return toml::parse(text);
  } catch (const toml::parse_error& error) {
    throw ConfigError(at_line(name, error.source().begin) + std::string(error.description()));
  } catch (const std::logic_error&) {
    throw ConfigError(name.string() + ": must be TOML, is not");
  }
}

void apply_table(const toml::table& table,
                 const std::filesystem::path& name,
                 const ListFields& list) {
  std::vector<Leaf> leaves;
  collect_leaves(table, "", leaves);
  std::sort(leaves.begin(), leaves.end(), [](const Leaf& a, const Leaf& b) {
    return std::tie(a.position.line, a.position.column) <
           std::tie(b.position.line, b.position.column);
  });
  std::vector<Assignment> assignments;
  for (const Leaf& leaf : leaves) {
    if (leaf.key == "base") continue;
    // An empty section of a known name says nothing.
    if (leaf.node->is_table()) {
      const FieldList fields = list();
      const auto inside = [&](const Field& field) { return field.key.starts_with(leaf.key + "."); };
      if (std::any_of(fields.fields().begin(), fields.fields().end(), inside)) continue;
    }
    assignments.push_back(
        {leaf.key, at_line(name, leaf.position),
         [node = leaf.node](const Field& field) { return assign(field, *node); }});
  }
  apply_all(assignments, list);
}

std::string read_recipe_file(const std::filesystem::path& file, const std::string& where) {
  try {
    return read_file(file, kMaxRecipeBytes);
  } catch (const DataError& error) {
    throw ConfigError(where + error.what());
  }
}

/// The value of an override: text as it stands, everything else as in a recipe.
std::string assign_text(const Field& field, const std::string& text) {
  const bool optional = std::holds_alternative<std::optional<int64_t>*>(field.place) ||
                        std::holds_alternative<std::optional<double>*>(field.place);
  if (optional && text == "none") {
    if (auto* const* place = std::get_if<std::optional<int64_t>*>(&field.place)) (*place)->reset();
    if (auto* const* place = std::get_if<std::optional<double>*>(&field.place)) (*place)->reset();
    return "";
  }
  const bool is_text = std::holds_alternative<std::string*>(field.place) ||
                       std::holds_alternative<Choice>(field.place);
  if (is_text && !text.starts_with('"') && !text.starts_with('\'')) {
    return assign(field, toml::value<std::string>(text));
  }
  if (std::holds_alternative<std::vector<std::string>*>(field.place) && !text.starts_with('[')) {
    toml::array parts;
    for (size_t start = 0; start <= text.size() && !text.empty();) {
      const size_t end = std::min(text.find(',', start), text.size());
      parts.push_back(text.substr(start, end - start));
      start = end + 1;
    }
    return assign(field, parts);
  }
  const bool is_list = std::holds_alternative<std::vector<int64_t>*>(field.place) ||
                       std::holds_alternative<std::vector<double>*>(field.place);
  const std::string value = is_list && !text.starts_with('[') ? "[" + text + "]" : text;
  try {
    const toml::table table = parse("value = " + value, "");
    return assign(field, *table.get("value"));
  } catch (const ConfigError&) {
    return "must be " + field_type(field) + ", got \"" + text + "\"";
  } catch (const toml::parse_error&) {
    return "must be " + field_type(field) + ", got \"" + text + "\"";
  }
}

}  // namespace

void read_recipe_text(const std::string& text,
                      const std::filesystem::path& name,
                      const ListFields& list) {
  const toml::table table = parse(text, name);
  if (const toml::node* base = table.get("base")) {
    const std::string where = at_line(name, base->source().begin);
    if (!base->is_string()) throw ConfigError(where + "base: must be text, got " + given(*base));
    const std::filesystem::path base_name = name.parent_path() / base->as_string()->get();
    const toml::table base_table = parse(read_recipe_file(base_name, where), base_name);
    if (const toml::node* second = base_table.get("base")) {
      throw ConfigError(at_line(base_name, second->source().begin) +
                        "base: a recipe that is a base may have none itself, and " + name.string() +
                        " is based on it");
    }
    apply_table(base_table, base_name, list);
  }
  apply_table(table, name, list);
}

void read_recipe(const std::filesystem::path& file, const ListFields& list) {
  read_recipe_text(read_recipe_file(file, ""), file, list);
}

void apply_overrides(const std::vector<std::string>& assignments, const ListFields& list) {
  std::vector<Assignment> parsed;
  for (const std::string& text : assignments) {
    const std::string where = "--set " + text + ": ";
    const size_t equals = text.find('=');
    if (equals == std::string::npos || equals == 0) {
      throw ConfigError(where + "must have the form a.b=value");
    }
    const auto control = [](char c) { return static_cast<unsigned char>(c) < ' '; };
    if (std::any_of(text.begin(), text.end(), control) ||
        find_invalid_utf8(text) != std::string::npos) {
      throw ConfigError(where + "must be UTF-8 without control characters");
    }
    parsed.push_back(
        {text.substr(0, equals), where, [value = text.substr(equals + 1)](const Field& field) {
           return assign_text(field, value);
         }});
  }
  apply_all(parsed, list);
}

}  // namespace elliptical
