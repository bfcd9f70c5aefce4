// SPDX-License-Identifier: MIT
//
// `elliptical bench`: our op against its peers on this machine, in turns, as ratios (see bench/).
#include <fmt/format.h>
#include <torch/torch.h>

#include <algorithm>
#include <iostream>
#include <nlohmann/json.hpp>

#include "bench/measure.h"
#include "elliptical/base/errors.h"
#include "elliptical/cli/arguments.h"
#include "elliptical/cli/bench_attack.h"
#include "elliptical/cli/bench_decode.h"
#include "elliptical/cli/bench_loader.h"
#include "elliptical/cli/bench_neighbour.h"
#include "elliptical/cli/bench_output.h"
#include "elliptical/cli/bench_training.h"
#include "elliptical/cli/bench_variants.h"
#include "elliptical/cli/bench_vision.h"
#include "elliptical/cli/table.h"

namespace elliptical::cli {
namespace {

using bench::Comparison;
using bench::Pass;

struct BenchOptions {
  std::string what = "attention";
  std::string format = "table";
  std::vector<std::string> peers = {"sdpa"};
  std::string case_substring;
  std::string pass = "both";
  bool quick = false;
  int threads = 0;  ///< 0: all
  bench::MeasureOptions measure;
};

std::vector<bench::Case> chosen_cases(const BenchOptions& options) {
  std::vector<bench::Case> chosen;
  for (const bench::Case& c : bench::all_cases()) {
    if (options.quick && !c.is_quick) continue;
    if (c.name().find(options.case_substring) != std::string::npos) chosen.push_back(c);
  }
  if (chosen.empty()) {
    throw UsageError(fmt::format("bench: no case has \"{}\" in its name (elliptical bench --list)",
                                 options.case_substring));
  }
  return chosen;
}

std::vector<Pass> chosen_passes(const std::string& pass) {
  if (pass == "forward") return {Pass::kForward};
  if (pass == "backward") return {Pass::kForwardBackward};
  return {Pass::kForward, Pass::kForwardBackward};
}

std::vector<Comparison> run(const BenchOptions& options) {
  const std::vector<bench::Case> cases = chosen_cases(options);
  const std::vector<Pass> passes = chosen_passes(options.pass);
  const size_t total = cases.size() * passes.size();
  std::vector<Comparison> comparisons;
  size_t done = 0;
  for (const bench::Case& c : cases) {
    // A case about the metric's price has only one peer, whatever was asked for.
    const auto peers = c.rival == "plain" ? std::vector<std::string>{"plain"} : options.peers;
    for (const Pass pass : passes) {
      show_bench_progress(done, total, c.name() + " " + bench::name(pass));
      const auto rows = bench::compare(c, pass, peers, at::get_num_threads(), options.measure);
      comparisons.insert(comparisons.end(), rows.begin(), rows.end());
      ++done;
    }
  }
  show_bench_progress(done, total, "done");
  return comparisons;
}

std::string milliseconds(double seconds) { return fmt::format("{:.3f}", seconds * 1e3); }

std::string verdict(const Comparison& row) {
  if (!row.skipped.empty()) return "skipped: " + row.skipped;
  std::string text;
  if (row.must() > 0) text = row.ratio_min() >= row.must() ? "reached" : "below";
  if (!row.inexact.empty()) text += (text.empty() ? "" : ", ") + ("INEXACT " + row.inexact);
  return text;
}

void print_table(const std::vector<Comparison>& comparisons, const Machine& machine) {
  Table table{.columns = {"B,H,N,D", "pass", "peer", "ours ms", "peer ms", "GFLOP/s", "ratio",
                          "median", "must", "target"}};
  for (const Comparison& row : comparisons) {
    std::vector<std::string> cells = {row.shape.name(), bench::name(row.pass), row.peer};
    if (row.skipped.empty()) {
      cells.insert(
          cells.end(),
          {milliseconds(row.ours.min), milliseconds(row.theirs.min),
           fmt::format("{:.0f}", row.shape.flops(row.pass) / row.ours.min / 1e9),
           fmt::format("{:.2f}", row.ratio_min()), fmt::format("{:.2f}", row.ratio_median()),
           row.must() ? fmt::format("{:.2f}", row.must()) : "-"});
    } else {
      cells.insert(cells.end(), 6, "-");
    }
    cells.push_back(verdict(row));
    table.rows.push_back(cells);
  }
  std::cout
      << machine_line(machine) << "\n"
      << "ratio = time of the peer / ours, minimum of interleaved calls; ours with a metric\n\n";
  print_text(std::cout, table);
}

/// Everything about one row, flat, so that CSV and JSON say the same.
nlohmann::ordered_json record(const Comparison& row, const Machine& machine) {
  nlohmann::ordered_json json = {{"case", row.shape.name()}, {"pass", bench::name(row.pass)},
                                 {"peer", row.peer},         {"B", row.shape.B},
                                 {"H", row.shape.H},         {"N", row.shape.N},
                                 {"D", row.shape.D},         {"is_causal", row.shape.is_causal}};
  const bool ran = row.skipped.empty();
  const auto number = [&](double value) { return ran ? nlohmann::ordered_json(value) : nullptr; };
  json["ours_min_s"] = number(row.ours.min);
  json["ours_median_s"] = number(row.ours.median);
  json["peer_min_s"] = number(row.theirs.min);
  json["peer_median_s"] = number(row.theirs.median);
  json["calls"] = row.ours.calls;
  json["ratio_min"] = number(ran ? row.ratio_min() : 0);
  json["ratio_median"] = number(ran ? row.ratio_median() : 0);
  json["must"] = row.must() ? nlohmann::ordered_json(row.must()) : nullptr;
  json["ours_error"] = number(row.ours_error);
  json["peer_error"] = number(row.theirs_error);
  json["inexact"] = row.inexact.empty() ? nullptr : nlohmann::ordered_json(row.inexact);
  json["skipped"] = ran ? nullptr : nlohmann::ordered_json(row.skipped);
  json["dtype"] = "float32";
  add_machine(machine, json);
  return json;
}

void print_records(const std::vector<Comparison>& comparisons,
                   const Machine& machine,
                   const std::string& format) {
  auto records = nlohmann::ordered_json::array();
  for (const Comparison& row : comparisons) records.push_back(record(row, machine));
  print_bench_records(records, format);
}

}  // namespace

int bench(const Arguments& arguments) {
  BenchOptions options;
  bool list_only = false;
  CLI::App app("Our attention or training against peers, calls interleaved.", "bench");
  app.add_option(
         "--what", options.what,
         "attention (the op), training (steps of the language model, against PyTorch), "
         "decode (its next token after many), variants (time and memory of every kind of "
         "attention), loader (pictures read and augmented, beside steps of DeiT-tiny), "
         "vision (DeiT-tiny, against PyTorch), attack (PGD on it, against PyTorch), or neighbour "
         "(training and attention beside a busy process, against quiet)")
      ->check(one_of({"attention", "training", "decode", "variants", "loader", "vision", "attack",
                      "neighbour"}))
      ->capture_default_str();
  app.add_option("--format", options.format, "How to print the results")
      ->check(one_of({"table", "json", "csv"}));
  app.add_option(
         "--peers", options.peers,
         "sdpa (torch), unfused (libtorch matmul and softmax), ort (ONNX Runtime, if installed)")
      ->delimiter(',')
      ->check(one_of({"sdpa", "unfused", "ort"}));
  app.add_option("--case", options.case_substring, "Only cases with this in their name");
  app.add_option("--pass", options.pass, "Backward means forward and backward together")
      ->check(one_of({"forward", "backward", "both"}));
  app.add_flag("--quick", options.quick, "A few cases, less than a minute");
  app.add_option("--threads", options.threads, "Threads of ours and of the peers (default: all)")
      ->check(CLI::PositiveNumber);
  app.add_option("--repeats", options.measure.repeats, "Calls of each contestant, at least")
      ->check(CLI::Range(1, options.measure.max_repeats))
      ->capture_default_str();
  app.add_option("--min-time", options.measure.min_time, "Seconds for each measurement, at least")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  app.add_flag("--list", list_only, "Print the names of the cases, measure nothing");
  if (!parse(app, arguments)) return 0;

  if (options.threads > 0) at::set_num_threads(options.threads);
  if (options.what == "attack") {
    return bench_attack({.format = options.format,
                         .substring = options.case_substring,
                         .repeats = options.measure.repeats,
                         .quick = options.quick,
                         .list_only = list_only});
  }
  if (options.what == "decode") {
    return bench_decode(options.format, options.measure.repeats, options.quick);
  }
  if (options.what == "loader") {
    return bench_loader(options.format, options.measure.repeats, options.quick);
  }
  if (options.what == "neighbour") {
    return bench_neighbour(options.format, options.measure.repeats, options.quick);
  }
  if (options.what == "training") {
    return bench_training({.format = options.format,
                           .trainer_substring = options.case_substring,
                           .repeats = options.measure.repeats,
                           .quick = options.quick,
                           .list_only = list_only});
  }
  if (options.what == "variants") {
    return bench_variants({.format = options.format,
                           .substring = options.case_substring,
                           .repeats = options.measure.repeats,
                           .quick = options.quick,
                           .list_only = list_only});
  }
  if (options.what == "vision") {
    return bench_vision({.format = options.format,
                         .runner_substring = options.case_substring,
                         .repeats = options.measure.repeats,
                         .quick = options.quick,
                         .list_only = list_only});
  }
  if (list_only) {
    for (const bench::Case& c : chosen_cases(options)) std::cout << c.name() << "\n";
    return 0;
  }
  const std::vector<Comparison> comparisons = run(options);
  const Machine machine = this_machine();
  options.format == "table" ? print_table(comparisons, machine)
                            : print_records(comparisons, machine, options.format);
  const bool all_exact = std::all_of(comparisons.begin(), comparisons.end(),
                                     [](const Comparison& row) { return row.inexact.empty(); });
  if (!all_exact) std::cerr << "bench: results marked INEXACT are further off than they may be\n";
  return all_exact ? 0 : 1;
}

}  // namespace elliptical::cli
