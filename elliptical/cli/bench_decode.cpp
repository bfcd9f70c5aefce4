// SPDX-License-Identifier: MIT
#include "elliptical/cli/bench_decode.h"

#include <fmt/format.h>

#include <iostream>
#include <nlohmann/json.hpp>

#include "bench/decode.h"
#include "elliptical/cli/bench_output.h"
#include "elliptical/cli/table.h"

namespace elliptical::cli {

int bench_decode(const std::string& format, int repeats, bool quick) {
  bench::TrainingCase shape;
  std::vector<int64_t> positions = {256, 512, 1024, 2048, 4096};
  if (quick) {
    shape = {
        .vocabulary_size = 300, .num_layers = 2, .dim = 32, .num_heads = 2, .feedforward_dim = 64};
    positions = {16, 64};
  }
  const auto results = bench::measure_decode(shape, {"softmax", "elliptical"}, positions, repeats,
                                             show_bench_progress);
  const Machine machine = this_machine();
  auto records = nlohmann::ordered_json::array();
  for (const bench::DecodeResult& row : results) {
    nlohmann::ordered_json record{{"what", "decode"},
                                  {"attention", row.attention},
                                  {"vocabulary_size", shape.vocabulary_size},
                                  {"position", row.position},
                                  {"min_s", row.timing.min},
                                  {"median_s", row.timing.median},
                                  {"tokens", row.timing.calls},
                                  {"dtype", "float32"}};
    add_machine(machine, record);
    records.push_back(std::move(record));
  }
  if (format != "table") {
    print_bench_records(records, format);
    return 0;
  }
  Table table{.columns = {"attention", "position", "ms/token", "median"}};
  for (const bench::DecodeResult& row : results) {
    table.rows.push_back({row.attention, std::to_string(row.position),
                          fmt::format("{:.3f}", 1e3 * row.timing.min),
                          fmt::format("{:.3f}", 1e3 * row.timing.median)});
  }
  std::cout << machine_line(machine) << "\n"
            << "one more token after so many, with a cache; kinds of attention in turns\n\n";
  print_text(std::cout, table);
  return 0;
}

}  // namespace elliptical::cli
