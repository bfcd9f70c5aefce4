// SPDX-License-Identifier: MIT
//
// `elliptical info`: what the library finds on this machine, and which path of the attention op
// each dtype takes here and why not another.
#include <torch/torch.h>

#include <iostream>
#include <nlohmann/json.hpp>

#include "elliptical/base/names.h"
#include "elliptical/cli/arguments.h"
#include "elliptical/cli/machine.h"
#include "elliptical/cli/short_waits.h"
#include "elliptical/cli/table.h"
#include "elliptical/ops/attention.h"

namespace elliptical::cli {
namespace {

struct PathOfType {
  std::string dtype;
  ops::Explanation explanation;
};

/// Asks the op itself, with a small problem of each dtype.
std::vector<PathOfType> paths() {
  std::vector<PathOfType> result;
  for (const auto& [name, dtype] : {std::pair{"float32", at::kFloat},
                                    {"float64", at::kDouble},
                                    {"bfloat16", at::kBFloat16},
                                    {"float16", at::kHalf}}) {
    const at::Tensor x = at::zeros({1, 1, 16, 16}, dtype);
    result.push_back({name, ops::explain(x, x, x)});
  }
  return result;
}

void print_json(const Machine& machine) {
  nlohmann::ordered_json json = {
      {"version", ELLIPTICAL_VERSION},
      {"torch", machine.torch_version},
      {"cpu", machine.cpu},
      {"features", machine.features},
      {"cores", machine.num_cores},
      {"threads", machine.num_threads},
      {"waits", describe_waits()},
      {"simd",
       {{"compiled", machine.simd_compiled},
        {"runnable", machine.simd_runnable},
        {"in_use", machine.simd}}},
  };
  for (const PathOfType& path : paths()) {
    nlohmann::ordered_json refused = nlohmann::ordered_json::object();
    for (const auto& refusal : path.explanation.refused) refused[refusal.path] = refusal.reason;
    json["paths"][path.dtype] = {{"path", path.explanation.path}, {"refused", refused}};
  }
  std::cout << json.dump(2) << "\n";
}

void print_table(const Machine& machine) {
  const Table facts{.columns = {"elliptical", ELLIPTICAL_VERSION},
                    .rows = {{"torch", machine.torch_version},
                             {"CPU", machine.cpu},
                             {"features", join(machine.features)},
                             {"cores", std::to_string(machine.num_cores)},
                             {"threads", std::to_string(machine.num_threads)},
                             {"waits", describe_waits()},
                             {"SIMD compiled", join(machine.simd_compiled)},
                             {"SIMD runnable", join(machine.simd_runnable)},
                             {"SIMD in use", machine.simd}}};
  print_text(std::cout, facts);
  std::cout << "\n";

  Table table{.columns = {"dtype", "path", "why not another"}};
  for (const PathOfType& path : paths()) {
    std::string reasons;
    for (const auto& refusal : path.explanation.refused) {
      reasons += (reasons.empty() ? "" : "; ") + refusal.path + ": " + refusal.reason;
    }
    table.rows.push_back({path.dtype, path.explanation.path, reasons});
  }
  print_text(std::cout, table);
}

}  // namespace

int info(const Arguments& arguments) {
  CLI::App app("CPU, kernel targets, torch, threads, and the path each dtype takes.", "info");
  std::string format = "table";
  app.add_option("--format", format, "How to print")->check(one_of({"table", "json"}));
  if (!parse(app, arguments)) return 0;

  const Machine machine = this_machine();
  format == "json" ? print_json(machine) : print_table(machine);
  return 0;
}

}  // namespace elliptical::cli
