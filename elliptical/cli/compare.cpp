// SPDX-License-Identifier: MIT
//
// `elliptical compare`: trains recipes and controls with several seeds, measures and attacks them
// alike and says which differences are larger than the noise. Without recipes: the table of runs
// that are there.
#include <fmt/format.h>

#include <iostream>

#include "elliptical/base/errors.h"
#include "elliptical/base/printable.h"
#include "elliptical/cli/comparison.h"
#include "elliptical/cli/comparison_printer.h"
#include "elliptical/cli/damage_arguments.h"
#include "elliptical/cli/progress_printer.h"
#include "elliptical/cli/session.h"
#include "elliptical/run/comparison_runner.h"
#include "elliptical/run/comparison_work.h"

namespace elliptical::cli {
namespace {

namespace fs = std::filesystem;

run::WorkRequest work_request(const CompareRequest& request) {
  run::WorkRequest work{.folder = request.folder,
                        .seeds = request.seeds,
                        .controls = request.controls.value_or("all"),
                        .split = request.split,
                        .method = request.method,
                        .attacks = request.attacks,
                        .eps = request.eps,
                        .damage = request.damage,
                        .num_pictures = request.num_pictures,
                        .num_jobs = request.num_jobs.value_or(1),
                        .num_threads = request.num_threads};
  for (const fs::path& recipe : request.recipes) {
    work.recipes.push_back(request.changes);
    work.recipes.back().recipe = recipe;
  }
  return work;
}

/// The options that were asked for: " --set a=b --smoke". Recipes, folder, seeds and format are
/// named elsewhere.
std::string given_options(const CompareRequest& request) {
  std::string text;
  const auto add = [&](const char* name, const auto& value) {
    if (value) text += fmt::format(" --{} {}", name, shell_word(fmt::format("{}", *value)));
  };
  add("controls", request.controls);
  for (const auto& [flag, value] : given_damage(request.damage)) add(flag.c_str(), &value);
  add("attack", request.attacks);
  add("eps", request.eps);
  add("pictures", request.num_pictures);
  add("method", request.method);
  add("split", request.split);
  add("reference", request.reference);
  add("jobs", request.num_jobs);
  for (const std::string& assignment : request.changes.assignments) add("set", &assignment);
  if (request.changes.smoke) text += " --smoke";
  if (request.num_threads > 0) add("threads", &request.num_threads);
  return text;
}

/// Where things are and what can be done with them.
void print_next(std::ostream& stream, const CompareRequest& request) {
  const std::string folder = shell_word(request.folder.string());
  stream << fmt::format("\nThe runs are in {}. Try next:\n", printable(request.folder.string()));
  if (!request.recipes.empty()) {
    std::string recipes;
    for (const fs::path& recipe : request.recipes) {
      recipes += " " + shell_word(recipe.string());
    }
    const size_t num_seeds = run::parse_seeds(request.seeds).size();
    stream << fmt::format(
        "  elliptical compare{} --run {} --seeds {}{}   # what is there is kept\n", recipes, folder,
        num_seeds + 2, given_options(request));
  }
  stream << fmt::format(
      "  elliptical compare --run {} --format json   # this table, for programs\n", folder);
}

/// Options that would do nothing are refused.
void check_attack(const CompareRequest& request) {
  if (request.eps && !request.attacks) {
    throw UsageError("compare: --eps needs an attack (--attack pgd)");
  }
  if (!request.attacks || !request.recipes.empty()) return;
  throw UsageError(
      "compare: --attack needs recipes, without them the table is of what was measured already "
      "(attack a run: elliptical attack RUN --attack pgd --eps 1/255 --eval-set blocks=50)");
}

}  // namespace

int compare(const CompareRequest& request) {
  check_attack(request);
  ProgressPrinter printer;
  report::ComparisonOptions options{.reference = request.reference.value_or("softmax")};
  bool is_whole = true;
  if (!request.recipes.empty()) {
    const run::ComparisonWork work = run::plan_work(work_request(request));
    run::check_folders(work.plan);
    is_whole =
        run::carry_out({.work = work, .program = kProgram, .hooks = printer.telling_hooks()});
    options.method = work.method;
    for (const measure::ChosenDamage& damage : work.damages) {
      options.damages[damage.perturbation] = {.kind = damage.kind, .strength = damage.strength};
      options.num_pictures = work.num_pictures;
    }
    options.split = work.split;
  }
  if (request.split) options.split = *request.split;
  if (request.method) options.method = *request.method;
  options.damages.merge(wanted_damages(request.damage));
  if (request.num_pictures) options.num_pictures = *request.num_pictures;
  report::RunCollection found = report::read_runs({request.folder}, tasks::measure_table());
  report::Comparison comparison = report::compare_runs(found.runs, options);
  comparison.problems.insert(comparison.problems.begin(), found.problems.begin(),
                             found.problems.end());
  if (comparison.is_smoke && request.format == "csv") printer.say(report::kSmokeBanner);
  print_comparison(std::cout, comparison, request.format);
  if (request.format == "table" && !comparison.rows.empty()) print_next(std::cout, request);
  if (comparison.has_non_finite) {
    throw RunError(
        "compare: what is measured must be finite, some of it is not and is left out (\"Not as it "
        "should "
        "be\" names it; train these runs again with a lower optimizer.learning_rate)");
  }
  return is_whole && !comparison.rows.empty() ? 0 : 1;
}

int compare(const Arguments& words) {
  CLI::App app(
      "Trains recipes and controls with several seeds and says which differences are larger than\n"
      "the noise. What is there already is not done again. Without recipes: the table of what is "
      "there.",
      "compare");
  app.footer("Ctrl-C saves what was begun; the same command goes on.");
  CompareRequest request;
  app.add_option("RECIPE", request.recipes, "TOML files, see recipes/");
  app.add_option("--run", request.folder, "folder that the run folders are in")->required();
  app.add_option("--seeds", request.seeds, "how many (3: seeds 1, 2, 3) or which ones (1,2,5)");
  app.add_option("--controls", request.controls,
                 "all, none, or names with commas: matched constant, learned temperature, "
                 "isotropic, random fixed, mean scaling, null twin");
  add_damage(app, request.damage);
  app.add_option("--attack", request.attacks,
                 "of pictures: names with commas (elliptical list attacks); none unless said");
  app.add_option("--eps", request.eps, "largest change of a pixel by an attack: 1/255,0.01")
      ->default_str(run::kUsualEps);
  app.add_option("--pictures", request.num_pictures,
                 "corrupted and attacked ones: only so many, of all classes alike; 0: all")
      ->check(CLI::NonNegativeNumber);
  add_method(app, request.method);
  app.add_option("--split", request.split, "part of the data that is measured")
      ->check(one_of({"train", "valid", "test"}));
  app.add_option("--reference", request.reference, "method that others are compared with");
  app.add_option("--jobs", request.num_jobs, "runs at once")->check(CLI::Range(1, 1024));
  add_overrides(app, request.changes);
  add_threads(app, request.num_threads);
  app.add_option("--format", request.format, "How to print")
      ->check(one_of({"table", "json", "csv"}));
  if (!parse(app, words)) return 0;
  if (request.attacks && request.attacks->empty()) request.attacks.reset();
  return compare(request);
}

}  // namespace elliptical::cli
