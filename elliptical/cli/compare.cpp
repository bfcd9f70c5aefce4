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
#include "elliptical/cli/comparison_state.h"
#include "elliptical/cli/damage_arguments.h"
#include "elliptical/cli/progress_printer.h"
#include "elliptical/cli/session.h"
#include "elliptical/run/comparison_cost.h"
#include "elliptical/run/comparison_runner.h"

namespace elliptical::cli {
namespace {

namespace fs = std::filesystem;

constexpr const char* kUsualSplit = "test";
constexpr const char* kUsualEps = "1/255";

/// Options that the task of the recipes does not know are refused.
void check_task(const CompareRequest& request, const measure::TaskMeasures& measures) {
  std::string advice;
  if (const measure::Perturbation* usual = measures.usual_perturbation()) {
    const measure::Parameter first = measure::parameters_of(*usual).front();
    advice = fmt::format(" (a {} is damaged by: --{} {})", measures.data, first.flag, first.usual);
  }
  const bool has_pictures = request.num_pictures.value_or(0) > 0;
  for (const auto& [option, is_refused] :
       {std::pair("--attack", !measures.is_attacked && request.attacks.has_value()),
        std::pair("--pictures", !measures.has_pictures && has_pictures)}) {
    if (!is_refused) continue;
    throw UsageError(
        fmt::format("compare: {} needs recipes that classify pictures, these are of {}{}", option,
                    measures.task, advice));
  }
}

/// What is measured beside clean data: the first damage of the task that is not turned off, attacks.
void choose_damage(const CompareRequest& request,
                   const measure::TaskMeasures& measures,
                   run::ComparisonWork& work) {
  if (measures.methods.empty()) work.method.clear();
  work.num_pictures = request.num_pictures.value_or(0);
  if (request.attacks) {
    work.attacks = run::make_attack_plan(
        {.attacks = *request.attacks, .eps = request.eps.value_or(kUsualEps)});
  }
  for (const measure::Perturbation& perturbation : measures.perturbations) {
    const DamageChoice choice = choice_of(perturbation, request.damage);
    if (choice.is_off) continue;
    work.perturbation = perturbation.name;
    work.strength = choice.strength;
    work.corruption = choice.kind;
    work.damage = choice.assignments;
    return;
  }
}

run::ComparisonWork make_work(const CompareRequest& request) {
  run::ComparisonRequest plan{.seeds = run::parse_seeds(request.seeds),
                              .controls = run::parse_controls(request.controls.value_or("all")),
                              .folder = request.folder};
  for (const fs::path& recipe : request.recipes) {
    run::RecipeRequest changed = request.changes;
    changed.recipe = recipe;
    plan.recipes.push_back(run::read_options(changed));
  }
  run::ComparisonWork work{.plan = run::plan_comparison(plan),
                           .split = request.split.value_or(kUsualSplit),
                           .method = request.method.value_or("block"),
                           .num_jobs = request.num_jobs.value_or(1),
                           .num_threads = request.num_threads};
  const measure::TaskMeasures& measures =
      *tasks::find_task(work.plan.front().options.task.name()).measures;
  check_task(request, measures);
  choose_damage(request, measures, work);
  work.num_tokens = run::num_sliding_tokens(work);
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
    const run::ComparisonWork work = make_work(request);
    run::check_folders(work.plan);
    if (work.method.empty() && request.method) {
      throw UsageError("compare: --method needs recipes of language models, these are of " +
                       work.plan.front().options.task.name() + " (leave it out)");
    }
    is_whole = run::carry_out({.work = work,
                               .state_of = state_of,
                               .program = kProgram,
                               .hooks = printer.telling_hooks()});
    options.method = work.method;
    if (!work.damage.empty()) {
      options.strength = work.strength;
      options.corruption = work.corruption;
      options.num_pictures = work.num_pictures;
    }
    options.split = work.split;
  }
  if (request.split) options.split = *request.split;
  if (request.method) options.method = *request.method;
  if (const auto strength = given_strength(request.damage)) options.strength = strength;
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
      ->default_str(kUsualEps);
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
