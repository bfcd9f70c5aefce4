// SPDX-License-Identifier: MIT
#include "elliptical/cli/bench_variants.h"

#include <fmt/format.h>

#include <iostream>
#include <nlohmann/json.hpp>

#include "bench/variants.h"
#include "elliptical/base/errors.h"
#include "elliptical/cli/bench_output.h"
#include "elliptical/cli/table.h"
#include "elliptical/nn/attention/attention.h"

namespace elliptical::cli {
namespace {

using bench::VariantResult;

constexpr double kMebibyte = 1 << 20;

/// What ratios are to; null when it was not measured.
const VariantResult* find_softmax(const std::vector<VariantResult>& results) {
  for (const VariantResult& result : results) {
    if (result.attention == "softmax") return &result;
  }
  return nullptr;
}

nlohmann::ordered_json record(const VariantResult& row,
                              const VariantResult* softmax,
                              const bench::TrainingCase& shape,
                              const std::vector<int64_t>& lengths,
                              const Machine& machine) {
  const bool measured = row.refusal.empty();
  const auto if_measured = [&](double x) { return measured ? nlohmann::ordered_json(x) : nullptr; };
  nlohmann::ordered_json r{{"what", "variants"},
                           {"attention", row.attention},
                           {"refusal", row.refusal},
                           {"vocabulary_size", shape.vocabulary_size},
                           {"batch", shape.batch},
                           {"window", shape.window},
                           {"num_parameters", row.num_parameters},
                           {"min_s", if_measured(row.step.min)},
                           {"median_s", if_measured(row.step.median)},
                           {"steps", row.step.calls},
                           {"ratio_min", nullptr},
                           {"ratio_median", nullptr}};
  if (softmax && measured) {
    r["ratio_min"] = row.step.min / softmax->step.min;
    r["ratio_median"] = row.step.median / softmax->step.median;
  }
  for (size_t i = 0; i < lengths.size(); ++i) {
    auto& bytes = r[fmt::format("peak_bytes_{}", lengths[i])];
    if (i < row.memory.size()) bytes = row.memory[i].bytes;
  }
  r["memory_exponent"] = measured ? if_measured(bench::growth_exponent(row.memory)) : nullptr;
  r["dtype"] = "float32";
  add_machine(machine, r);
  return r;
}

void print_table(const std::vector<VariantResult>& results,
                 const VariantResult* softmax,
                 const bench::TrainingCase& shape,
                 const std::vector<int64_t>& lengths,
                 const Machine& machine) {
  Table table{.columns = {"attention", "parameters", "ms/step", "median", "/ softmax", "median"}};
  for (const int64_t N : lengths) table.columns.push_back(fmt::format("MiB at {}", N));
  table.columns.emplace_back("exponent");
  std::string refused;
  for (const VariantResult& row : results) {
    if (!row.refusal.empty()) {
      refused += fmt::format("{} is not measured: {}\n", row.attention, row.refusal);
      continue;
    }
    const auto ratio = [&](double bench::Timing::* time) {
      return softmax ? fmt::format("{:.2f}", row.step.*time / softmax->step.*time) : "";
    };
    std::vector<std::string> cells = {row.attention,
                                      std::to_string(row.num_parameters),
                                      fmt::format("{:.1f}", 1e3 * row.step.min),
                                      fmt::format("{:.1f}", 1e3 * row.step.median),
                                      ratio(&bench::Timing::min),
                                      ratio(&bench::Timing::median)};
    for (size_t i = 0; i < lengths.size(); ++i) {
      cells.push_back(i < row.memory.size() ? fmt::format("{:.1f}", row.memory[i].bytes / kMebibyte)
                                            : "-");
    }
    cells.push_back(fmt::format("{:.2f}", bench::growth_exponent(row.memory)));
    table.rows.push_back(std::move(cells));
  }
  std::cout << machine_line(machine) << "\n"
            << fmt::format(
                   "training steps of a language model ({} layers, width {}, {} heads, batch {} x "
                   "{}) in turns; peak memory\nof forward and backward of one layer over so many "
                   "tokens, and the power of their number it grows with\n\n",
                   shape.num_layers, shape.dim, shape.num_heads, shape.batch, shape.window);
  print_text(std::cout, table);
  if (!refused.empty()) std::cout << "\n" << refused;
}

}  // namespace

int bench_variants(const VariantsBenchOptions& options) {
  std::vector<std::string> names;
  for (const nn::AttentionEntry& entry : nn::attention_table()) {
    const std::string name = entry.name;
    if (name.find(options.substring) != std::string::npos) names.push_back(name);
  }
  if (names.empty()) {
    throw UsageError(fmt::format("bench: no case has \"{}\" in its name (elliptical bench --list)",
                                 options.substring));
  }
  if (options.list_only) {
    for (const std::string& name : names) std::cout << name << "\n";
    return 0;
  }
  const bench::TrainingCase shape = options.quick ? bench::tiny_case() : bench::two_core_case();
  const std::vector<int64_t> lengths =
      options.quick ? std::vector<int64_t>{64, 128} : std::vector<int64_t>{1024, 2048, 4096, 8192};
  const auto results =
      bench::measure_variants(shape, names, lengths, options.repeats, show_bench_progress);
  const VariantResult* softmax = find_softmax(results);
  const Machine machine = this_machine();
  if (options.format == "table") {
    print_table(results, softmax, shape, lengths, machine);
    return 0;
  }
  auto records = nlohmann::ordered_json::array();
  for (const VariantResult& row : results) {
    records.push_back(record(row, softmax, shape, lengths, machine));
  }
  print_bench_records(records, options.format);
  return 0;
}

}  // namespace elliptical::cli
