// SPDX-License-Identifier: MIT
#include "elliptical/cli/bench_attack.h"

#include <fmt/format.h>
#include <torch/torch.h>

#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "bench/attack.h"
#include "elliptical/base/errors.h"
#include "elliptical/cli/bench_output.h"
#include "elliptical/cli/table.h"

namespace elliptical::cli {
namespace {

constexpr double kMust = 1.3;  // how many times as fast as PyTorch, on the same model
constexpr bench::AttackedModel kModels[] = {
    {"softmax", false}, {"elliptical", false}, {"elliptical", true}};

bench::AttackCase attack_case(bool quick) {
  if (!quick) return {};
  return {.pictures = 4,
          .image_size = 16,
          .num_layers = 2,
          .dim = 32,
          .num_heads = 2,
          .num_classes = 5,
          .steps = 2};
}

nlohmann::ordered_json record(const bench::AttackResult& row,
                              const bench::AttackCase& shape,
                              const Machine& machine) {
  nlohmann::ordered_json record{{"what", "attack"},
                                {"attacker", row.attacker},
                                {"pictures", shape.pictures},
                                {"image_size", shape.image_size},
                                {"steps", shape.steps},
                                {"num_parameters", row.num_parameters},
                                {"min_s", row.timing.min},
                                {"median_s", row.timing.median},
                                {"attacks", row.timing.calls},
                                {"dtype", "float32"}};
  add_machine(machine, record);
  return record;
}

void print_table(const std::vector<bench::AttackResult>& results,
                 const bench::AttackCase& shape,
                 const Machine& machine) {
  Table table{.columns = {"attacker", "s/attack", "median", "ratio", "median", "must", "target"}};
  for (const bench::AttackResult& ours : results) {
    std::vector<std::string> row = {ours.attacker,
                                    fmt::format("{:.3f}", ours.timing.min),
                                    fmt::format("{:.3f}", ours.timing.median),
                                    "",
                                    "",
                                    "",
                                    ""};
    for (const bench::AttackResult& peer : results) {
      if (peer.attacker != "torch " + ours.attacker) continue;
      const double ratio = peer.timing.min / ours.timing.min;
      row[3] = fmt::format("{:.2f}", ratio);
      row[4] = fmt::format("{:.2f}", peer.timing.median / ours.timing.median);
      row[5] = fmt::format("{:.2f}", kMust);
      row[6] = ratio >= kMust ? "reached" : "below";
    }
    table.rows.push_back(std::move(row));
  }
  std::cout << machine_line(machine) << "\n"
            << fmt::format(
                   "PGD-{} on {} pictures of {} x {} in turns; ratio = time of PyTorch / ours\n\n",
                   shape.steps, shape.pictures, shape.image_size, shape.image_size);
  print_text(std::cout, table);
}

}  // namespace

int bench_attack(const AttackBenchOptions& options) {
  const bench::AttackCase shape = attack_case(options.quick);
  std::vector<std::unique_ptr<bench::Attacker>> attackers;
  bool any = false;
  for (const bench::AttackedModel& model : kModels) {
    for (const bool is_torch : {false, true}) {
      const std::string name = (is_torch ? "torch " : "") + model.text();
      if (name.find(options.substring) == std::string::npos) continue;
      any = true;
      if (options.list_only) {
        std::cout << name << "\n";
      } else {
        attackers.push_back(is_torch
                                ? bench::make_torch_attacker(shape, model, at::get_num_threads())
                                : bench::make_our_attacker(shape, model));
      }
    }
  }
  if (!any) {
    throw UsageError("bench: no attacker has \"" + options.substring +
                     "\" in its name (elliptical bench --what attack --list)");
  }
  if (attackers.empty()) return 0;
  std::vector<bench::Attacker*> pointers;
  for (const auto& attacker : attackers) pointers.push_back(attacker.get());
  const auto results = bench::measure_attacks(pointers, options.repeats, show_bench_progress);
  const Machine machine = this_machine();
  if (options.format == "table") {
    print_table(results, shape, machine);
    return 0;
  }
  auto records = nlohmann::ordered_json::array();
  for (const bench::AttackResult& row : results) records.push_back(record(row, shape, machine));
  print_bench_records(records, options.format);
  return 0;
}

}  // namespace elliptical::cli
