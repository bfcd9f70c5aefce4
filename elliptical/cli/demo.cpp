// SPDX-License-Identifier: MIT
//
// `elliptical demo`, what ./run does: compares softmax attention, elliptical attention and the two
// controls that tell a metric from a temperature, on WikiText-2 (or, where that can not be had, on
// the built-in language), and writes a report. What is finished already is not done again.
#include <fmt/format.h>

#include <iostream>

#include "elliptical/cli/progress_printer.h"
#include "elliptical/cli/session.h"
#include "elliptical/data/catalog.h"
#include "elliptical/data/text/small_language.h"

namespace elliptical::cli {
namespace {

namespace fs = std::filesystem;

constexpr const char* kData = "wikitext-2";
constexpr const char* kControls = "matched constant,learned temperature";

/// The name of the data to use: WikiText-2 where it is or can be fetched.
std::string choose_data(ProgressPrinter& printer) {
  if (data::locate_data(kData)) return kData;
  printer.say(fmt::format("{} is not here: elliptical data get {}", kData, kData));
  try {
    cli::data({"get", kData});
    return kData;
  } catch (const std::exception& error) {
    printer.say(fmt::format("{}; the built-in language takes its place", error.what()));
    return std::string(data::kSmallLanguage);
  }
}

}  // namespace

int demo(const Arguments& arguments) {
  CLI::App app(
      "Compares softmax and elliptical attention, and two controls, on real text; writes a report.",
      "demo");
  fs::path recipes = "recipes/lm", folder = "runs/main", report_path = "report.html";
  std::string seeds = "1";
  RecipeArguments changes;
  int threads = 0;
  app.add_option("--recipes", recipes,
                 "folder with two-core-softmax.toml and two-core-elliptical.toml");
  app.add_option("--run", folder, "folder that the run folders are in")->capture_default_str();
  app.add_option("--report", report_path, "the HTML file to write")->capture_default_str();
  app.add_option("--seeds", seeds, "how many, or which ones (1,2,5)")->capture_default_str();
  changes.add_overrides(app);
  add_threads(app, threads);
  if (!parse(app, arguments)) return 0;

  std::string data_name = std::string(data::kSmallLanguage);
  if (!changes.smoke) {
    ProgressPrinter printer;
    data_name = choose_data(printer);
  }
  if (data_name != kData) {
    folder += "-" + data_name;
    changes.assignments.insert(changes.assignments.begin(), "task.data.name=" + data_name);
  }
  Arguments comparison = {(recipes / "two-core-softmax.toml").string(),
                          (recipes / "two-core-elliptical.toml").string(),
                          "--run",
                          folder.string(),
                          "--seeds",
                          seeds,
                          "--controls",
                          kControls};
  for (const std::string& text : changes.assignments) {
    comparison.insert(comparison.end(), {"--set", text});
  }
  if (changes.smoke) comparison.emplace_back("--smoke");
  if (threads > 0) comparison.insert(comparison.end(), {"--threads", std::to_string(threads)});
  if (const int status = compare(comparison); status != 0) return status;

  std::cout << "\n";
  if (const int status = report({folder.string(), "-o", report_path.string()}); status != 0) {
    return status;
  }
  std::cout << fmt::format(
      "Open {} in a browser: curves, attention maps, and the metric of each head. Also:\n"
      "  ./run demo --seeds 3                            # three seeds: differences get intervals\n"
      "  ./run generate {}/elliptical-seed-1 --prompt \"The game was\"\n"
      "  ./run list attention                            # what else can be compared\n",
      report_path.string(), folder.string());
  return 0;
}

}  // namespace elliptical::cli
