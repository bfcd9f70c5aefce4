// SPDX-License-Identifier: MIT
//
// Inference and training steps of DeiT-tiny against PyTorch eager: pictures per second of
// everybody, then the ratios that are to be shown.
#include "elliptical/cli/bench_vision.h"

#include <fmt/format.h>
#include <torch/torch.h>

#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "bench/vision.h"
#include "elliptical/base/errors.h"
#include "elliptical/cli/bench_output.h"
#include "elliptical/cli/table.h"

namespace elliptical::cli {
namespace {

using bench::VisionCase;
using bench::VisionResult;

VisionCase vision_case(bool quick) {
  if (!quick) return {};
  return {.batch = 2,
          .image_size = 32,
          .patch_size = 8,
          .dim = 32,
          .num_layers = 2,
          .num_heads = 2,
          .num_classes = 10};
}

struct VisionName {
  const char* attention;
  bool is_torch;
  std::string text() const { return std::string(is_torch ? "torch " : "") + attention; }
};
constexpr VisionName kVisionNames[] = {
    {"softmax", false}, {"softmax", true}, {"elliptical", false}, {"elliptical", true}};

const VisionResult* find(const std::vector<VisionResult>& results,
                         bench::VisionPass pass,
                         const std::string& runner) {
  for (const VisionResult& result : results) {
    if (result.pass == pass && result.runner == runner) return &result;
  }
  return nullptr;
}

void print_ratios(const std::vector<VisionResult>& results) {
  Table table{.columns = {"pass", "ours", "against", "ratio", "median", "must", "target"}};
  for (const bench::VisionTarget& target : bench::vision_targets()) {
    const VisionResult* ours = find(results, target.pass, target.ours);
    const VisionResult* peer = find(results, target.pass, target.peer);
    if (!ours || !peer) continue;
    const double ratio = peer->timing.min / ours->timing.min;
    table.rows.push_back({std::string(to_string(target.pass)), target.ours, target.peer,
                          fmt::format("{:.2f}", ratio),
                          fmt::format("{:.2f}", peer->timing.median / ours->timing.median),
                          fmt::format("{:.2f}", target.must),
                          ratio >= target.must ? "reached" : "below"});
  }
  if (table.rows.empty()) return;
  std::cout << "\n";
  print_text(std::cout, table);
}

nlohmann::ordered_json record(const VisionResult& row,
                              const VisionCase& shape,
                              const Machine& machine) {
  nlohmann::ordered_json record{
      {"what", "vision"},
      {"pass", to_string(row.pass)},
      {"runner", row.runner},
      {"batch", shape.batch},
      {"image_size", shape.image_size},
      {"num_parameters", row.num_parameters},
      {"images_per_second", static_cast<double>(shape.batch) / row.timing.min},
      {"min_s", row.timing.min},
      {"median_s", row.timing.median},
      {"calls", row.timing.calls},
      {"dtype", "float32"}};
  add_machine(machine, record);
  return record;
}

void print_table(const std::vector<VisionResult>& results,
                 const VisionCase& shape,
                 const Machine& machine) {
  Table table{.columns = {"pass", "runner", "parameters", "images/s", "median", "s/batch"}};
  const auto batch = static_cast<double>(shape.batch);
  for (const VisionResult& row : results) {
    table.rows.push_back(
        {std::string(to_string(row.pass)), row.runner, std::to_string(row.num_parameters),
         fmt::format("{:.1f}", batch / row.timing.min),
         fmt::format("{:.1f}", batch / row.timing.median), fmt::format("{:.4f}", row.timing.min)});
  }
  std::cout << machine_line(machine) << "\n"
            << fmt::format(
                   "vision transformer, {} pictures of {} x {} in turns; ratio = time of "
                   "the other / ours, minimum\n\n",
                   shape.batch, shape.image_size, shape.image_size);
  print_text(std::cout, table);
  print_ratios(results);
}

}  // namespace

int bench_vision(const VisionBenchOptions& options) {
  const VisionCase shape = vision_case(options.quick);
  std::vector<std::unique_ptr<bench::VisionRunner>> runners;
  bool any = false;
  for (const VisionName& name : kVisionNames) {
    if (name.text().find(options.runner_substring) == std::string::npos) continue;
    any = true;
    if (options.list_only) {
      std::cout << name.text() << "\n";
      continue;
    }
    std::cerr << "starting " << name.text() << "\n";
    runners.push_back(name.is_torch
                          ? bench::make_torch_vision(shape, name.attention, at::get_num_threads())
                          : bench::make_our_vision(shape, name.attention));
  }
  if (!any) {
    throw UsageError(fmt::format("bench: no case has \"{}\" in its name (elliptical bench --list)",
                                 options.runner_substring));
  }
  if (runners.empty()) return 0;
  std::vector<bench::VisionRunner*> pointers;
  for (const auto& runner : runners) pointers.push_back(runner.get());
  const std::vector<VisionResult> results =
      bench::measure_vision(pointers, options.repeats, show_bench_progress);
  const Machine machine = this_machine();
  if (options.format == "table") {
    print_table(results, shape, machine);
    return 0;
  }
  auto records = nlohmann::ordered_json::array();
  for (const VisionResult& row : results) records.push_back(record(row, shape, machine));
  print_bench_records(records, options.format);
  return 0;
}

}  // namespace elliptical::cli
