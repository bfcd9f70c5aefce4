// SPDX-License-Identifier: MIT
//
// `elliptical demo`, what ./run does: trains the two-core recipe with softmax and with elliptical
// attention on WikiText-2 (or, where that can not be had, on the built-in language), then measures
// both on clean and on swapped text. What is finished already is not done again.
#include <fmt/format.h>

#include <algorithm>
#include <iostream>

#include "elliptical/base/config.h"
#include "elliptical/base/errors.h"
#include "elliptical/cli/progress_printer.h"
#include "elliptical/cli/session.h"
#include "elliptical/cli/table.h"
#include "elliptical/data/catalog.h"
#include "elliptical/data/text/small_language.h"
#include "elliptical/run/train.h"

namespace elliptical::cli {
namespace {

namespace fs = std::filesystem;

constexpr const char* kData = "wikitext-2";
constexpr std::array kVariants = {"softmax", "elliptical"};

struct DemoArguments {
  fs::path recipes = "recipes/lm";
  fs::path runs = "runs";
  double swap_rate = 0.025;
  std::vector<std::string> assignments;
};

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

/// Trains the run to its end, from wherever it is.
void finish_run(const run::RunPaths& paths, run::RunOptions& options, ProgressPrinter& printer) {
  if (!fs::exists(paths.config())) {
    printer.say(fmt::format("training {} ({} steps)", paths.folder.string(), options.train.steps));
    start_run(paths, options, printer.hooks());
    return;
  }
  run::RunOptions existing;
  run::read_config(paths, existing);
  const std::vector<std::string> changes = differences(fields_of(options), fields_of(existing));
  if (!changes.empty()) {
    throw RunError(
        fmt::format("{}: must be a run of this recipe, differs in {} (remove it, or choose "
                    "another folder with --runs)",
                    paths.folder.string(), changes.front()));
  }
  resume_run(paths, printer.hooks());
}

/// The last value that the run's records hold of a metric with these labels.
std::optional<double> recorded(const run::RunPaths& paths,
                               const std::string& metric,
                               const run::Labels& labels) {
  std::optional<double> value;
  for (const Record& record : read_records(paths.records())) {
    const bool matches = std::all_of(labels.begin(), labels.end(), [&](const auto& label) {
      const auto found = record.labels.find(label.first);
      return found != record.labels.end() && found->second == label.second;
    });
    if (record.metric == metric && matches) value = record.value;
  }
  return value;
}

/// Measures the finished run on clean and swapped text, unless its records have it already; one
/// row.
std::vector<std::string> measured_row(const std::string& variant,
                                      const run::RunPaths& paths,
                                      int64_t step,
                                      double swap_rate,
                                      ProgressPrinter& printer) {
  const run::Labels clean = {{"perturbation", std::string("none")},
                             {"source", std::string("eval")},
                             {"split", std::string("test")},
                             {"step", step}};
  run::Labels swapped = clean;
  swapped["perturbation"] = std::string("word_swap");
  swapped["swap_rate"] = swap_rate;
  if (!recorded(paths, "perplexity", clean) || !recorded(paths, "perplexity", swapped)) {
    LoadedRun loaded = load_run(paths.folder, -1, printer.hooks());
    evaluate_run(loaded, {"split=test"}, printer.hooks());
    evaluate_run(loaded, {"split=test", fmt::format("swap_rate={}", swap_rate)}, printer.hooks());
  }
  const auto text = [](std::optional<double> value, const char* pattern) {
    return value ? fmt::format(fmt::runtime(pattern), *value) : std::string("-");
  };
  const double clean_value = recorded(paths, "perplexity", clean).value();
  const double swapped_value = recorded(paths, "perplexity", swapped).value();
  return {variant,
          text(clean_value, "{:.2f}"),
          text(swapped_value, "{:.2f}"),
          text(swapped_value / clean_value, "{:.3f}"),
          text(recorded(paths, "perplexity_swapped_targets", swapped), "{:.1f}"),
          text(recorded(paths, "perplexity_clean_targets", swapped), "{:.2f}")};
}

}  // namespace

int demo(const Arguments& arguments) {
  CLI::App app("Trains softmax and elliptical attention on real text and compares them.", "demo");
  DemoArguments demo;
  int threads = 0;
  std::string format = "table";
  app.add_option("--recipes", demo.recipes,
                 "folder with two-core-softmax.toml and two-core-elliptical.toml");
  app.add_option("--runs", demo.runs, "folder that the run folders are in");
  app.add_option("--swap", demo.swap_rate, "rate of swapped words")->check(CLI::Range(0.0, 1.0));
  app.add_option("--set", demo.assignments, "a.b=c: sets an option of both runs; may be repeated")
      ->allow_extra_args(false);
  add_threads(app, threads);
  app.add_option("--format", format, "How to print")->check(one_of({"table", "csv"}));
  if (!parse(app, arguments)) return 0;

  use_threads(threads);
  ProgressPrinter printer;
  const std::string data_name = choose_data(printer);
  const bool is_real = data_name == kData;
  Table table{.columns = {"attention", "clean", "swapped", "ratio", "swapped targets",
                          "clean targets, swapped context"}};
  std::vector<fs::path> folders;
  for (const std::string variant : kVariants) {
    RecipeArguments recipe{.recipe = demo.recipes / ("two-core-" + variant + ".toml"),
                           .assignments = demo.assignments};
    if (!is_real) recipe.assignments.push_back("task.data.name=" + data_name);
    run::RunOptions options = read_recipe_options(recipe);
    const run::RunPaths paths{demo.runs /
                              ("two-core-" + variant + (is_real ? "" : "-" + data_name))};
    folders.push_back(paths.folder);
    finish_run(paths, options, printer);

    table.rows.push_back(
        measured_row(variant, paths, options.train.steps, demo.swap_rate, printer));
  }
  if (format == "csv") {
    print_csv(std::cout, table);
    return 0;
  }
  std::cout << fmt::format(
      "Test perplexity on {}, and with {:.3g} % of the words swapped (one seed, small models:\n"
      "differences of one or two percent are noise)\n\n",
      data_name, 100 * demo.swap_rate);
  print_text(std::cout, table);
  const std::string run = folders.back().string();
  std::cout << fmt::format(
      "\nThe runs are in {} and {}. Try next:\n"
      "  ./run eval {} --split test --method sliding\n"
      "  ./run generate {} --prompt \"The game was\"\n"
      "  ./run train {} --run runs/longer --set train.steps=5000\n",
      folders.front().string(), run, run, run,
      (demo.recipes / "two-core-elliptical.toml").string());
  return 0;
}

}  // namespace elliptical::cli
