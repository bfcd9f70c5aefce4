// SPDX-License-Identifier: MIT
#include "elliptical/cli/arguments.h"

#include <algorithm>
#include <iostream>

#include "elliptical/base/errors.h"
#include "elliptical/base/names.h"

namespace elliptical::cli {

bool parse(CLI::App& app, const Arguments& arguments) {
  app.allow_extras();
  try {
    app.parse(Arguments(arguments.rbegin(), arguments.rend()));  // CLI11 takes them from the back
  } catch (const CLI::CallForHelp&) {
    std::cout << app.help();
    return false;
  } catch (const CLI::ParseError& error) {
    throw UsageError(app.get_name() + ": " + error.what());
  }
  for (const std::string& extra : app.remaining()) {
    if (extra.starts_with("-")) {
      std::vector<std::string> options;
      for (const CLI::Option* option : app.get_options()) {
        for (const std::string& name : option->get_lnames()) options.push_back("--" + name);
      }
      throw UsageError(app.get_name() + ": option " +
                       unknown_name(extra.substr(0, extra.find('=')), options));
    }
    throw UsageError(app.get_name() + ": unexpected argument \"" + extra + "\"");
  }
  return true;
}

CLI::Validator one_of(const std::vector<std::string>& names) {
  const auto check = [names](const std::string& value) {
    return std::find(names.begin(), names.end(), value) != names.end() ? ""
                                                                       : unknown_name(value, names);
  };
  std::string alternatives;
  for (const std::string& name : names) alternatives += (alternatives.empty() ? "" : "|") + name;
  return CLI::Validator(check, alternatives);
}

}  // namespace elliptical::cli
