// SPDX-License-Identifier: MIT
//
// `elliptical list WHAT`: what there is to choose from.
#include <algorithm>
#include <iostream>

#include "elliptical/attack/attack.h"
#include "elliptical/cli/arguments.h"
#include "elliptical/cli/table.h"
#include "elliptical/data/catalog.h"
#include "elliptical/data/corrupt/corruption.h"
#include "elliptical/data/text/small_language.h"
#include "elliptical/kernels/simd.h"
#include "elliptical/models/image_model.h"
#include "elliptical/nn/attention/attention.h"
#include "elliptical/tasks/task.h"

namespace elliptical::cli {
namespace {

Table attacks_table() {
  Table table{.columns = {"attack", "what it is"}};
  for (const attack::AttackEntry& entry : attack::attack_table()) {
    table.rows.push_back({entry.name, entry.description});
  }
  return table;
}

Table attention_table() {
  const auto yes_or_no = [](bool can) { return can ? "yes" : "no"; };
  Table table{.columns = {"attention", "causal", "padding", "streams", "any length", "what it is"}};
  for (const nn::AttentionEntry& entry : nn::attention_table()) {
    table.rows.push_back({entry.name,
                          entry.can.looks_ahead ? "looks ahead" : yes_or_no(entry.can.causal),
                          yes_or_no(entry.can.padding), yes_or_no(entry.can.streams),
                          yes_or_no(!entry.can.fixed_length), entry.description});
  }
  return table;
}

Table corruptions_table() {
  Table table{.columns = {"corruption", "group", "what it is"}};
  for (const data::CorruptionEntry& entry : data::corruption_table()) {
    table.rows.push_back({entry.name, to_string(entry.group), entry.description});
  }
  return table;
}

Table data_table() {
  Table table{.columns = {"data", "here", "what it is"}};
  table.rows.push_back({std::string(data::kSmallLanguage), "yes", "a made-up language, generated"});
  for (const data::DataSet& set : data::catalog()) {
    table.rows.push_back({set.name, data::locate_data(set.name) ? "yes" : "no", set.description});
  }
  return table;
}

Table models_table() {
  Table table{.columns = {"model", "what it is"}};
  for (const models::ImageModelEntry& entry : models::image_model_table()) {
    table.rows.push_back({entry.name, entry.description});
  }
  return table;
}

Table simd_table() {
  const std::vector<std::string> runnable = kernels::simd_targets();
  Table table{.columns = {"target", "this CPU", "in use"}};
  for (const std::string& target : kernels::simd_compiled_targets()) {
    const bool can_run = std::find(runnable.begin(), runnable.end(), target) != runnable.end();
    table.rows.push_back({target, can_run ? "runs" : "can not run",
                          target == kernels::simd_target() ? "yes" : "no"});
  }
  return table;
}

Table tasks_table() {
  Table table{.columns = {"task", "what it is"}};
  for (const tasks::TaskEntry& entry : tasks::task_table()) {
    table.rows.push_back({entry.name, entry.description});
  }
  return table;
}

struct Listing {
  const char* name;
  Table (*table)();
};
constexpr std::array kListings = {Listing{"attacks", attacks_table},
                                  Listing{"attention", attention_table},
                                  Listing{"corruptions", corruptions_table},
                                  Listing{"data", data_table},
                                  Listing{"models", models_table},
                                  Listing{"simd", simd_table},
                                  Listing{"tasks", tasks_table}};

}  // namespace

int list(const Arguments& arguments) {
  CLI::App app("What there is to choose from.", "list");
  std::string what;
  std::string format = "table";
  std::vector<std::string> names;
  for (const Listing& listing : kListings) names.emplace_back(listing.name);
  app.add_option("WHAT", what,
                 "attacks, attention variants, corruptions of pictures, data sets, models of "
                 "pictures, tasks, "
                 "or simd: instruction sets of the kernels (force one: ELLIPTICAL_SIMD=avx2)")
      ->required()
      ->check(one_of(names));
  app.add_option("--format", format, "How to print")->check(one_of({"table", "csv"}));
  if (!parse(app, arguments)) return 0;

  for (const Listing& listing : kListings) {
    if (listing.name != what) continue;
    const Table table = listing.table();
    format == "csv" ? print_csv(std::cout, table) : print_text(std::cout, table);
  }
  return 0;
}

}  // namespace elliptical::cli
