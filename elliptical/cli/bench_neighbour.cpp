// SPDX-License-Identifier: MIT
#include "elliptical/cli/bench_neighbour.h"

#include <fmt/format.h>

#include <iostream>
#include <nlohmann/json.hpp>

#include "bench/neighbour.h"
#include "elliptical/cli/bench_output.h"
#include "elliptical/cli/short_waits.h"
#include "elliptical/cli/table.h"

namespace elliptical::cli {

int bench_neighbour(const std::string& format, int repeats, bool quick) {
  const bench::TrainingCase model = quick ? bench::tiny_case() : bench::two_core_case();
  const bench::Case attention{.B = 4, .H = 8, .N = quick ? 64 : 1024, .D = 64};
  const auto results = bench::measure_neighbour(model, attention, repeats, show_bench_progress);
  const Machine machine = this_machine();

  auto records = nlohmann::ordered_json::array();
  Table table{.columns = {"what", "quiet ms", "beside ms", "ratio", "median", "must", "target"}};
  for (const bench::NeighbourResult& row : results) {
    nlohmann::ordered_json record{{"what", "neighbour"},
                                  {"of", row.what},
                                  {"quiet_min_s", row.quiet.min},
                                  {"quiet_median_s", row.quiet.median},
                                  {"beside_min_s", row.beside.min},
                                  {"beside_median_s", row.beside.median},
                                  {"calls", row.quiet.calls},
                                  {"ratio_min", row.ratio_min()},
                                  {"ratio_median", row.ratio_median()},
                                  {"must", bench::NeighbourResult::kMust},
                                  {"waits", describe_waits()},
                                  {"dtype", "float32"}};
    add_machine(machine, record);
    records.push_back(std::move(record));
    table.rows.push_back(
        {row.what, fmt::format("{:.1f}", 1e3 * row.quiet.min),
         fmt::format("{:.1f}", 1e3 * row.beside.min), fmt::format("{:.2f}", row.ratio_min()),
         fmt::format("{:.2f}", row.ratio_median()),
         fmt::format("{:.2f}", bench::NeighbourResult::kMust),
         row.ratio_median() >= bench::NeighbourResult::kMust ? "reached" : "below"});
  }
  if (format != "table") {
    print_bench_records(records, format);
    return 0;
  }
  std::cout << machine_line(machine) << ", waits " << describe_waits() << "\n"
            << fmt::format(
                   "a training step of recipes/lm/two-core-elliptical.toml and attention on "
                   "{}, forward, beside one busy process;\n"
                   "ratio = time when it rests / time beside it, minimum of turns\n\n",
                   attention.name());
  print_text(std::cout, table);
  return 0;
}

}  // namespace elliptical::cli
