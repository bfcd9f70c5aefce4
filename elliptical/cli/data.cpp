// SPDX-License-Identifier: MIT
//
// `elliptical data list|get|import|verify`: data sets by name.
#include <iostream>
#include <nlohmann/json.hpp>

#include "bench/line_process.h"
#include "elliptical/base/errors.h"
#include "elliptical/cli/arguments.h"
#include "elliptical/cli/data_sets.h"
#include "elliptical/cli/table.h"
#include "elliptical/data/catalog.h"
#include "elliptical/data/fetch.h"

namespace elliptical::cli {
namespace {

/// Where `get` and `import` put a data set: the last place that is looked at.
std::filesystem::path place_of(const std::string& name) { return data::data_places(name).back(); }

/// npm stands beside Python where tools/setup put both.
data::FetchTools fetch_tools() {
  const std::string python = bench::peer_python();
  const auto npm = std::filesystem::path(python).replace_filename("npm");
  return {.python = python, .npm = std::filesystem::exists(npm) ? npm.string() : "npm"};
}

void print_list(const std::string& format) {
  Table table{.columns = {"name", "there", "how", "licence", "what"}};
  nlohmann::ordered_json json = nlohmann::ordered_json::array();
  for (const data::DataSet& set : data::catalog()) {
    const auto place = data::locate_data(set.name);
    const std::string how = set.package ? "get or import" : "import";
    table.rows.push_back(
        {set.name, place ? place->string() : "no", how, set.licence, set.description});
    json.push_back({{"name", set.name},
                    {"place", place ? nlohmann::ordered_json(place->string()) : nullptr},
                    {"can_get", set.package.has_value()},
                    {"licence", set.licence},
                    {"origin", set.origin},
                    {"description", set.description}});
  }
  if (format == "json") {
    std::cout << json.dump(2) << "\n";
  } else {
    format == "csv" ? print_csv(std::cout, table) : print_text(std::cout, table);
  }
}

/// What is there now, and under which terms.
void print_found(const data::DataSet& set, const std::filesystem::path& place) {
  std::cout << set.name << ": " << place.string() << ", checksums and counts are right\n";
  std::cout << "licence: " << set.licence << "\n";
}

}  // namespace

void get_data_set(const std::string& name) {
  const data::DataSet& set = data::find_data_set(name);
  const std::filesystem::path place = place_of(name);
  data::get_data(set, place, fetch_tools());
  print_found(set, place);
}

int data(const Arguments& arguments) {
  CLI::App app(
      "Data sets by name. They are looked for in $ELLIPTICAL_DATA/NAME, then in data/NAME below "
      "the\n"
      "current folder, where get and import put them. Any folder of text or of pictures works\n"
      "without import.",
      "data");
  std::string action, name, from, format = "table";
  app.add_option("ACTION", action,
                 "list: what there is; get: fetch from a package registry; import: copy official "
                 "files or link folders of pictures; verify: check checksums, counts and every "
                 "picture")
      ->required()
      ->check(one_of({"list", "get", "import", "verify"}));
  app.add_option("NAME", name, "Which data set (all but list)");
  app.add_option("--from", from, "Folder or archive to import from");
  app.add_option("--format", format, "How to print the list")
      ->check(one_of({"table", "csv", "json"}));
  if (!parse(app, arguments)) return 0;

  if (action == "list") {
    if (!name.empty()) throw UsageError("data list: unexpected argument \"" + name + "\"");
    print_list(format);
    return 0;
  }
  if (name.empty())
    throw UsageError("data " + action + ": NAME is missing (run: elliptical data list)");
  if ((action == "import") == from.empty()) {
    throw UsageError("data " + action + ": --from belongs to import, and import needs it");
  }
  if (action == "get") {
    get_data_set(name);
    return 0;
  }
  const data::DataSet& set = data::find_data_set(name);
  std::filesystem::path place = place_of(name);
  if (action == "import") {
    data::import_data(set, place, from);
  } else {
    place = data::find_data(name);
    data::verify_data(set, place);
  }
  print_found(set, place);
  return 0;
}

}  // namespace elliptical::cli
