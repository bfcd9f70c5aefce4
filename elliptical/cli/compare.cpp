// SPDX-License-Identifier: MIT
//
// `elliptical compare`: trains recipes and controls with several seeds, measures them alike and
// says which differences are larger than the noise. Without recipes: the table of runs that are
// there.
#include <fmt/format.h>

#include <iostream>

#include "elliptical/base/errors.h"
#include "elliptical/cli/comparison_printer.h"
#include "elliptical/cli/comparison_runner.h"
#include "elliptical/cli/session.h"

namespace elliptical::cli {
namespace {

namespace fs = std::filesystem;

struct CompareArguments {
  std::vector<fs::path> recipes;
  RecipeArguments changes;  ///< of every recipe
  fs::path folder;
  std::string seeds = "3", controls = "all", split = "test", format = "table",
              reference = "softmax", corruption = "gaussian_noise";
  double swap_rate = 0.025;
  int severity = 3;
  int num_jobs = 1, num_threads = 0;
};

/// Runs of pictures are measured on corrupted ones, runs of text on swapped words.
void choose_damage(const CompareArguments& arguments, ComparisonWork& work) {
  if (work.plan.front().options.task.name() == "classify_image") {
    if (arguments.corruption == "none") return;
    work.strength = arguments.severity;
    work.corruption = arguments.corruption;
    work.damage = {"corrupt=" + arguments.corruption,
                   fmt::format("severity={}", arguments.severity)};
  } else if (arguments.swap_rate > 0) {
    work.strength = arguments.swap_rate;
    work.damage = {fmt::format("swap_rate={}", arguments.swap_rate)};
  }
}

ComparisonWork make_work(const CompareArguments& arguments) {
  run::ComparisonRequest request{.seeds = run::parse_seeds(arguments.seeds),
                                 .controls = run::parse_controls(arguments.controls),
                                 .folder = arguments.folder};
  for (const fs::path& recipe : arguments.recipes) {
    RecipeArguments changed = arguments.changes;
    changed.recipe = recipe;
    request.recipes.push_back(read_recipe_options(changed));
  }
  ComparisonWork work{.plan = run::plan_comparison(request),
                      .split = arguments.split,
                      .num_jobs = arguments.num_jobs,
                      .num_threads = arguments.num_threads};
  choose_damage(arguments, work);
  return work;
}

/// Where things are and what can be done with them.
void print_next(std::ostream& stream, const CompareArguments& arguments) {
  const std::string folder = arguments.folder.string();
  stream << fmt::format("\nThe runs are in {}. Try next:\n", folder);
  if (!arguments.recipes.empty()) {
    std::string recipes;
    for (const fs::path& recipe : arguments.recipes) recipes += " " + recipe.string();
    for (const std::string& text : arguments.changes.assignments) recipes += " --set " + text;
    if (arguments.changes.smoke) recipes += " --smoke";
    const size_t num_seeds = run::parse_seeds(arguments.seeds).size();
    stream << fmt::format("  elliptical compare{} --run {} --seeds {}   # what is there is kept\n",
                          recipes, folder, num_seeds + 2);
  }
  stream << fmt::format(
      "  elliptical compare --run {} --format json   # this table, for programs\n", folder);
}

}  // namespace

int compare(const Arguments& words) {
  CLI::App app(
      "Trains recipes and controls with several seeds and says which differences are larger than\n"
      "the noise. What is there already is not done again. Without recipes: the table of what is "
      "there.",
      "compare");
  app.footer("Ctrl-C saves what was begun; the same command goes on.");
  CompareArguments arguments;
  app.add_option("RECIPE", arguments.recipes, "TOML files, see recipes/");
  app.add_option("--run", arguments.folder, "folder that the run folders are in")->required();
  app.add_option("--seeds", arguments.seeds, "how many (3: seeds 1, 2, 3) or which ones (1,2,5)");
  app.add_option("--controls", arguments.controls,
                 "all, none, or names with commas: matched constant, learned temperature, "
                 "isotropic, random fixed, mean scaling, null twin");
  app.add_option("--swap", arguments.swap_rate, "rate of swapped words; 0: clean text only")
      ->check(CLI::Range(0.0, 1.0));
  app.add_option("--corrupt", arguments.corruption,
                 "of pictures: names with commas, all, extra, or none: clean pictures only");
  app.add_option("--severity", arguments.severity, "of corruptions; 0: all five")
      ->check(CLI::Range(0, 5));
  app.add_option("--split", arguments.split, "part of the data that is measured")
      ->check(one_of({"train", "valid", "test"}));
  app.add_option("--reference", arguments.reference, "method that others are compared with");
  app.add_option("--jobs", arguments.num_jobs, "runs at once")->check(CLI::Range(1, 1024));
  arguments.changes.add_overrides(app);
  add_threads(app, arguments.num_threads);
  app.add_option("--format", arguments.format, "How to print")
      ->check(one_of({"table", "json", "csv"}));
  if (!parse(app, words)) return 0;

  ProgressPrinter printer;
  report::ComparisonOptions options{.reference = arguments.reference};
  bool is_whole = true;
  if (!arguments.recipes.empty()) {
    const ComparisonWork work = make_work(arguments);
    check_folders(work.plan);
    is_whole = carry_out(work, printer);
    if (!work.damage.empty()) options.strength = work.strength;
  }
  if (!arguments.recipes.empty() || app.count("--split") > 0) options.split = arguments.split;
  if (app.count("--swap") > 0) options.strength = arguments.swap_rate;
  if (app.count("--severity") > 0) options.strength = arguments.severity;
  report::RunCollection found = report::read_runs({arguments.folder});
  report::Comparison comparison = report::compare_runs(found.runs, options);
  comparison.problems.insert(comparison.problems.begin(), found.problems.begin(),
                             found.problems.end());
  print_comparison(std::cout, comparison, arguments.format);
  if (arguments.format == "table" && !comparison.rows.empty()) print_next(std::cout, arguments);
  return is_whole && !comparison.rows.empty() ? 0 : 1;
}

}  // namespace elliptical::cli
