// SPDX-License-Identifier: MIT
//
// `elliptical list WHAT`: what there is to choose from.
#include <algorithm>
#include <iostream>

#include "elliptical/cli/arguments.h"
#include "elliptical/cli/table.h"
#include "elliptical/kernels/simd.h"

namespace elliptical::cli {
namespace {

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

}  // namespace

int list(const Arguments& arguments) {
  CLI::App app("What there is to choose from.", "list");
  std::string what;
  std::string format = "table";
  app.add_option("WHAT", what,
                 "simd: instruction sets of the kernels (force one: ELLIPTICAL_SIMD=avx2)")
      ->required()
      ->check(one_of({"simd"}));
  app.add_option("--format", format, "How to print")->check(one_of({"table", "csv"}));
  if (!parse(app, arguments)) return 0;

  const Table table = simd_table();
  format == "csv" ? print_csv(std::cout, table) : print_text(std::cout, table);
  return 0;
}

}  // namespace elliptical::cli
