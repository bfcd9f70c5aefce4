// SPDX-License-Identifier: MIT
//
// Options from and to text: strict TOML recipes, `--set a.b=c`, the effective configuration,
// differences between two of them. All of it works on the list of fields (options.h), so a new
// field needs no code here.
//
// A recipe holds only what differs from the defaults. It may name one other recipe, relative to
// itself, `base = "small.toml"`, whose values come first; that one names none. A key may be
// absent, unknown keys and wrong types are errors with file, line and the nearest valid names.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "elliptical/base/options.h"

namespace elliptical {

/// Lists the fields of some options struct anew: fields can depend on the values of choices.
using ListFields = std::function<FieldList()>;

template <class T>
ListFields fields_of(T& options) {
  return [&options] {
    FieldList fields;
    options.visit(fields);
    return fields;
  };
}

/// Reads a recipe (and its base) into the options behind `list`. Throws ConfigError:
///     recipes/lm/small.toml:12: unknown key "model.widht", did you mean "model.width"?
void read_recipe(const std::filesystem::path& file, const ListFields& list);

/// The same from text; `name` stands for the file in messages and resolves `base`.
void read_recipe_text(const std::string& text,
                      const std::filesystem::path& name,
                      const ListFields& list);

/// `assignments` are "a.b=c" in order; choices that select fields are applied first. Strings need
/// no quotes. Throws ConfigError that starts with `--set a.b=c: `.
void apply_overrides(const std::vector<std::string>& assignments, const ListFields& list);

/// The effective configuration as a recipe: every field, in the order of the list, tables as
/// `[section]`. Reading it back gives the same values.
std::string to_toml(const ListFields& list);

/// The values of a recipe by full key, whatever they are of: text without quotes, numbers and lists
/// as they are written. For readers that do not know the options: reports, tables. Its `base` is
/// not followed. Throws ConfigError when the text is no TOML.
std::map<std::string, std::string> recipe_values(const std::string& text,
                                                 const std::filesystem::path& name);

/// One line per field: key, type or names, current value, help.
struct FieldText {
  std::string key, type, value, help;
};
std::vector<FieldText> describe(const ListFields& list);

/// "a.b: 3, was 2" for each field that differs or that only one of the two has.
std::vector<std::string> differences(const ListFields& now, const ListFields& before);

}  // namespace elliptical
