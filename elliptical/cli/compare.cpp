// SPDX-License-Identifier: MIT
//
// `elliptical compare`: trains recipes and controls with several seeds, measures and attacks them
// alike and says which differences are larger than the noise. Without recipes: the table of runs
// that are there.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iostream>

#include "elliptical/base/errors.h"
#include "elliptical/base/printable.h"
#include "elliptical/cli/comparison_cost.h"
#include "elliptical/cli/comparison_printer.h"
#include "elliptical/cli/comparison_runner.h"
#include "elliptical/cli/damage_arguments.h"
#include "elliptical/cli/session.h"

namespace elliptical::cli {
namespace {

namespace fs = std::filesystem;

struct CompareArguments {
  std::vector<fs::path> recipes;
  RecipeArguments changes;  ///< of every recipe
  fs::path folder;
  std::string seeds = "3", controls = "all", split = "test", format = "table", method = "block",
              reference = "softmax";
  DamageArguments damage;
  run::AttackWords attack{.attacks = "", .eps = "1/255"};
  int64_t num_pictures = 0;
  int num_jobs = 1, num_threads = 0;
};

/// Which damage, as it was asked for: the first of the task that is not turned off.
void choose_damage(const CompareArguments& arguments,
                   const measure::TaskMeasures& measures,
                   ComparisonWork& work) {
  for (const measure::Perturbation& perturbation : measures.perturbations) {
    const DamageChoice choice = arguments.damage.choice_of(perturbation);
    if (choice.is_off) continue;
    work.perturbation = perturbation.name;
    work.strength = choice.strength;
    work.corruption = choice.kind;
    work.damage = choice.assignments;
    return;
  }
}

/// Options that the task of the recipes does not know are refused.
void check_task(const CompareArguments& arguments,
                const measure::TaskMeasures& measures,
                const CLI::App& app) {
  std::string advice;
  if (const measure::Perturbation* usual = measures.usual_perturbation()) {
    const measure::Parameter first = measure::parameters_of(*usual).front();
    advice = fmt::format(" (a {} is damaged by: --{} {})", measures.data, first.flag, first.usual);
  }
  for (const auto& [option, is_refused] :
       {std::pair("--attack", !measures.is_attacked && !arguments.attack.attacks.empty()),
        std::pair("--pictures", !measures.has_pictures && arguments.num_pictures > 0)}) {
    if (!is_refused) continue;
    throw UsageError(
        fmt::format("compare: {} needs recipes that classify pictures, these are of {}{}", option,
                    measures.task, advice));
  }
  if (measures.methods.empty() && app.count("--method") > 0) {
    throw UsageError(fmt::format(
        "compare: --method needs recipes of language models, these are of {} (leave it out)",
        measures.task));
  }
}

ComparisonWork make_work(const CompareArguments& arguments, const CLI::App& app) {
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
                      .method = arguments.method,
                      .num_jobs = arguments.num_jobs,
                      .num_threads = arguments.num_threads};
  const measure::TaskMeasures& measures =
      *tasks::find_task(work.plan.front().options.task.name()).measures;
  check_task(arguments, measures, app);
  if (measures.methods.empty()) work.method.clear();
  if (measures.has_pictures) work.num_pictures = arguments.num_pictures;
  if (!arguments.attack.attacks.empty()) work.attacks = run::make_attack_plan(arguments.attack);
  choose_damage(arguments, measures, work);
  work.num_tokens = num_sliding_tokens(work);
  return work;
}

/// The options as they were given, but for those that are named here: " --set a=b --smoke".
std::string given_options(const CLI::App& app) {
  constexpr std::array kNamed = {"RECIPE", "run", "seeds", "format"};
  std::string text;
  for (const CLI::Option* option : app.get_options()) {
    const std::string name = option->get_single_name();
    if (std::find(kNamed.begin(), kNamed.end(), name) != kNamed.end()) continue;
    for (const std::string& value : option->results()) {
      const bool is_flag = option->get_items_expected_max() == 0;
      text += " --" + name + (is_flag ? "" : " " + shell_word(value));
    }
  }
  return text;
}

/// Where things are and what can be done with them.
void print_next(std::ostream& stream, const CompareArguments& arguments, const CLI::App& app) {
  const std::string folder = shell_word(arguments.folder.string());
  stream << fmt::format("\nThe runs are in {}. Try next:\n", printable(arguments.folder.string()));
  if (!arguments.recipes.empty()) {
    std::string recipes;
    for (const fs::path& recipe : arguments.recipes) {
      recipes += " " + shell_word(recipe.string());
    }
    const size_t num_seeds = run::parse_seeds(arguments.seeds).size();
    stream << fmt::format(
        "  elliptical compare{} --run {} --seeds {}{}   # what is there is kept\n", recipes, folder,
        num_seeds + 2, given_options(app));
  }
  stream << fmt::format(
      "  elliptical compare --run {} --format json   # this table, for programs\n", folder);
}

/// Options that would do nothing are refused.
void check_attack(const CompareArguments& arguments, const CLI::App& app) {
  if (app.count("--eps") > 0 && arguments.attack.attacks.empty()) {
    throw UsageError("compare: --eps needs an attack (--attack pgd)");
  }
  if (arguments.attack.attacks.empty() || !arguments.recipes.empty()) return;
  throw UsageError(
      "compare: --attack needs recipes, without them the table is of what was measured already "
      "(attack a run: elliptical attack RUN --attack pgd --eps 1/255 --eval-set blocks=50)");
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
  arguments.damage.add_to(app);
  app.add_option("--attack", arguments.attack.attacks,
                 "of pictures: names with commas (elliptical list attacks); none unless said");
  app.add_option("--eps", arguments.attack.eps,
                 "largest change of a pixel by an attack: 1/255,0.01")
      ->capture_default_str();
  app.add_option("--pictures", arguments.num_pictures,
                 "corrupted and attacked ones: only so many, of all classes alike; 0: all")
      ->check(CLI::NonNegativeNumber);
  add_method(app, arguments.method);
  app.add_option("--split", arguments.split, "part of the data that is measured")
      ->check(one_of({"train", "valid", "test"}));
  app.add_option("--reference", arguments.reference, "method that others are compared with");
  app.add_option("--jobs", arguments.num_jobs, "runs at once")->check(CLI::Range(1, 1024));
  arguments.changes.add_overrides(app);
  add_threads(app, arguments.num_threads);
  app.add_option("--format", arguments.format, "How to print")
      ->check(one_of({"table", "json", "csv"}));
  if (!parse(app, words)) return 0;
  check_attack(arguments, app);

  ProgressPrinter printer;
  report::ComparisonOptions options{.reference = arguments.reference};
  bool is_whole = true;
  if (!arguments.recipes.empty()) {
    const ComparisonWork work = make_work(arguments, app);
    check_folders(work.plan);
    is_whole = carry_out(work, printer);
    options.method = work.method;
    if (!work.damage.empty()) {
      options.strength = work.strength;
      options.corruption = work.corruption;
      options.num_pictures = work.num_pictures;
    }
  }
  if (!arguments.recipes.empty() || app.count("--split") > 0) options.split = arguments.split;
  if (app.count("--method") > 0) options.method = arguments.method;
  if (const auto strength = arguments.damage.given_strength(app)) options.strength = strength;
  if (app.count("--pictures") > 0) options.num_pictures = arguments.num_pictures;
  report::RunCollection found = report::read_runs({arguments.folder}, tasks::measure_table());
  report::Comparison comparison = report::compare_runs(found.runs, options);
  comparison.problems.insert(comparison.problems.begin(), found.problems.begin(),
                             found.problems.end());
  if (comparison.is_smoke && arguments.format == "csv") printer.say(report::kSmokeBanner);
  print_comparison(std::cout, comparison, arguments.format);
  if (arguments.format == "table" && !comparison.rows.empty())
    print_next(std::cout, arguments, app);
  if (comparison.has_non_finite) {
    throw RunError(
        "compare: what is measured must be finite, some of it is not and is left out (\"Not as it "
        "should "
        "be\" names it; train these runs again with a lower optimizer.learning_rate)");
  }
  return is_whole && !comparison.rows.empty() ? 0 : 1;
}

}  // namespace elliptical::cli
