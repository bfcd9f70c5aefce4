// SPDX-License-Identifier: MIT
//
// `elliptical demo`, what ./run does: compares softmax attention, elliptical attention and the two
// controls that tell a metric from a temperature, on WikiText-2 (or, where that can not be had, on
// the built-in language); then softmax and elliptical attention on CIFAR-10 (or the built-in
// pictures), with the first of these controls and under attack; and writes a report of each. What
// is finished already is not done again.
#include <fmt/format.h>

#include <array>
#include <iostream>

#include "elliptical/cli/comparison.h"
#include "elliptical/cli/data_sets.h"
#include "elliptical/cli/progress_printer.h"
#include "elliptical/cli/report_page.h"
#include "elliptical/cli/session.h"
#include "elliptical/data/catalog.h"
#include "elliptical/data/image/small_pictures.h"
#include "elliptical/data/text/small_language.h"

namespace elliptical::cli {
namespace {

namespace fs = std::filesystem;

constexpr const char* kTextControls = "matched constant,learned temperature";
constexpr const char* kPictureControls = "matched constant";
/// With so few steps of recipes/lm/two-core-*.toml text takes about five minutes of two cores, and
/// with so few of recipes/vit/two-core-*.toml pictures about 90 seconds.
constexpr const char* kTextSteps = "train.steps=800";
constexpr std::array kPictureSteps = {"train.steps=600", "schedule.warmup_steps=50"};
constexpr const char* kAttacks = "fgsm,pgd";
constexpr const char* kEps = "1/255";

/// Data to compare on, and what takes its place where it can not be had.
struct DemoData {
  const char* name;
  std::string_view built_in;
  const char* built_in_words;
};
constexpr DemoData kText = {"wikitext-2", data::kSmallLanguage, "the built-in language takes"};
constexpr DemoData kPictures = {"cifar-10", data::kSmallPictures, "the built-in pictures take"};

struct DemoArguments {
  fs::path recipes = "recipes", folder = "runs/main", report = "report.html";
  std::string seeds = "1";
  run::RecipeRequest changes;
  int threads = 0;
};

/// The name of the data to use: the real ones where they are or can be fetched.
std::string choose_data(const DemoData& wanted, bool smoke) {
  if (smoke) return std::string(wanted.built_in);
  if (data::locate_data(wanted.name)) return wanted.name;
  ProgressPrinter printer;
  printer.say(fmt::format("{0} is not here: elliptical data get {0}", wanted.name));
  try {
    get_data_set(wanted.name);
    return wanted.name;
  } catch (const std::exception& error) {
    printer.say(fmt::format("{}; {} its place", error.what(), wanted.built_in_words));
    return std::string(wanted.built_in);
  }
}

/// Softmax and elliptical of a folder of recipes with `assignments`. `request` says what else is
/// done with them; its folder gets the name of the data where they are not the real ones.
int compare_two(const DemoArguments& arguments,
                const DemoData& data,
                const fs::path& recipes,
                const std::vector<std::string>& assignments,
                CompareRequest& request) {
  request.recipes = {recipes / "two-core-softmax.toml", recipes / "two-core-elliptical.toml"};
  request.seeds = arguments.seeds;
  request.changes.smoke = arguments.changes.smoke;
  request.num_threads = arguments.threads;
  const std::string name = choose_data(data, arguments.changes.smoke);
  if (name != data.name) {
    request.folder += "-" + name;
    request.changes.assignments.push_back("task.data.name=" + name);
  }
  request.changes.assignments.insert(request.changes.assignments.end(), assignments.begin(),
                                     assignments.end());
  return compare(request);
}

void report_on(const fs::path& folder, const fs::path& output) {
  write_report(
      {.folders = {folder}, .output = output, .words = {folder.string(), "-o", output.string()}});
}

}  // namespace

int demo(const Arguments& words) {
  CLI::App app(
      "Compares softmax and elliptical attention on real text, with two controls, and on real "
      "pictures,\nwith attacks; writes a report of each.",
      "demo");
  DemoArguments arguments;
  app.add_option("--recipes", arguments.recipes,
                 "folder with lm/ and vit/, each with two-core-softmax.toml and "
                 "two-core-elliptical.toml");
  app.add_option("--run", arguments.folder, "folder that the run folders are in")
      ->capture_default_str();
  app.add_option("--report", arguments.report,
                 "the HTML file to write; that of pictures has -pictures in its name")
      ->capture_default_str();
  app.add_option("--seeds", arguments.seeds, "how many, or which ones (1,2,5)")
      ->capture_default_str();
  app.add_option("--set", arguments.changes.assignments,
                 "a.b=c: sets an option of the recipes of text; may be repeated")
      ->allow_extra_args(false);
  app.add_flag("--smoke", arguments.changes.smoke,
               "shrink everything to something that ends within seconds");
  add_threads(app, arguments.threads);
  if (!parse(app, words)) return 0;

  CompareRequest text{.folder = arguments.folder, .controls = kTextControls};
  std::vector<std::string> assignments = arguments.changes.assignments;
  if (!arguments.changes.smoke) assignments.insert(assignments.begin(), kTextSteps);
  if (const int status = compare_two(arguments, kText, arguments.recipes / "lm", assignments, text);
      status != 0) {
    return status;
  }
  std::cout << "\n";
  CompareRequest pictures{.folder = arguments.folder,
                          .controls = kPictureControls,
                          .attacks = kAttacks,
                          .eps = kEps,
                          .damage = {{"corrupt", "none"}},
                          .num_pictures = arguments.changes.smoke ? 8 : 200};
  pictures.folder += "-pictures";
  std::vector<std::string> fewer_steps;
  if (!arguments.changes.smoke) fewer_steps.assign(kPictureSteps.begin(), kPictureSteps.end());
  if (const int status =
          compare_two(arguments, kPictures, arguments.recipes / "vit", fewer_steps, pictures);
      status != 0) {
    return status;
  }

  std::cout << "\n";
  // A page each: a comparison is of one task.
  fs::path picture_report = arguments.report;
  picture_report.replace_filename(arguments.report.stem().string() + "-pictures" +
                                  arguments.report.extension().string());
  report_on(text.folder, arguments.report);
  report_on(pictures.folder, picture_report);
  std::cout << fmt::format(
      "Open {} and {} in a browser: curves, attacks, attention maps, and the metric\n"
      "of each head. Also:\n"
      "  ./run demo --seeds 3                            # three seeds: differences get intervals\n"
      "  ./run generate {}/elliptical-seed-1 --prompt \"The game was\"\n"
      "  ./run list attention                            # what else can be compared\n",
      arguments.report.string(), picture_report.string(), text.folder.string());
  return 0;
}

}  // namespace elliptical::cli
