// SPDX-License-Identifier: MIT
//
// `elliptical data list|get|import|verify|sample`: data sets by name.
#include <algorithm>
#include <array>
#include <cstdio>
#include <iostream>
#include <nlohmann/json.hpp>

#include "bench/line_process.h"
#include "elliptical/base/errors.h"
#include "elliptical/base/files.h"
#include "elliptical/base/printable.h"
#include "elliptical/cli/arguments.h"
#include "elliptical/cli/data_sets.h"
#include "elliptical/cli/table.h"
#include "elliptical/data/catalog.h"
#include "elliptical/data/fetch.h"
#include "elliptical/data/image/codec.h"
#include "elliptical/data/sequence/sample.h"

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

struct SampleOptions {
  std::string split = "train", to;
  int64_t count = 64;
  uint64_t seed = 1;
  int64_t side = 32;
};

std::string rounded(double value) {
  std::array<char, 32> text;
  std::snprintf(text.data(), text.size(), value < 100 ? "%.1f" : "%.0f", value);
  return text.data();
}

void print_sample(const std::string& name, const SampleOptions& options) {
  const auto set = data::open_sequences(name, data::split_from_string(options.split),
                                        {.side = options.side, .seed = options.seed});
  if (!options.to.empty() && set->form().side == 0) {
    throw UsageError("data sample: --to is for sets of pictures, " + printable(name) + " has none");
  }
  const data::SequenceSample sample = data::sample_sequences(*set, options.count);
  std::cout << printable(set->name()) << ": " << options.split << ", " << set->size()
            << (set->form().is_pair ? " pairs, " : " examples, ") << set->num_classes()
            << " classes, " << set->num_ids() << " ids, at most " << set->form().max_length
            << " long\n";
  std::cout << "of the first " << sample.count << ":\n";
  for (size_t i = 0; i < sample.class_counts.size(); ++i) {
    std::cout << "  class " << printable(set->form().class_names[i]) << ": "
              << sample.class_counts[i] << "\n";
  }
  for (const auto& [what, range] : sample.ranges) {
    std::cout << "  " << what << ": " << range.low << " to " << range.high << ", mean "
              << rounded(range.mean) << "\n";
  }
  std::cout << "  " << rounded(static_cast<double>(sample.count) / sample.seconds)
            << " a second in one thread\n";
  std::cout << "the first one, class "
            << printable(set->form().class_names[static_cast<size_t>(set->label(0))]) << ":\n"
            << data::shown_example(*set, 0) << "\n";
  if (options.to.empty()) return;
  const int64_t scale = std::max<int64_t>(1, 96 / set->form().side);
  const auto bytes = data::encode_png(data::contact_sheet(*set, options.count, 8, scale));
  write_file_atomically(options.to, {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
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
                 "picture; sample: look at a set of sequences, by name or folder")
      ->required()
      ->check(one_of({"list", "get", "import", "verify", "sample"}));
  app.add_option("NAME", name, "Which data set (all but list)");
  app.add_option("--from", from, "Folder or archive to import from");
  app.add_option("--format", format, "How to print the list")
      ->check(one_of({"table", "csv", "json"}));
  SampleOptions sample;
  app.add_option("--split", sample.split, "Sample: train, valid or test");
  app.add_option("--count", sample.count, "Sample: how many examples")
      ->check(CLI::Range(int64_t{1}, int64_t{1'000'000}));
  app.add_option("--seed", sample.seed, "Sample: of a generated set");
  app.add_option("--side", sample.side, "Sample: width and height of pictures in a folder");
  app.add_option("--to", sample.to, "Sample: a PNG file for a sheet of the pictures");
  if (!parse(app, arguments)) return 0;

  if (action == "list") {
    if (!name.empty()) throw UsageError("data list: unexpected argument \"" + name + "\"");
    print_list(format);
    return 0;
  }
  if (name.empty())
    throw UsageError("data " + action + ": NAME is missing (run: elliptical data list)");
  if (action == "sample") {
    print_sample(name, sample);
    return 0;
  }
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
