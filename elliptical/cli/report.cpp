// SPDX-License-Identifier: MIT
//
// `elliptical report DIR... -o report.html`: what runs measured, as one self-contained HTML file.
#include "elliptical/cli/report_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <iostream>

#include "elliptical/base/errors.h"
#include "elliptical/base/files.h"
#include "elliptical/base/printable.h"
#include "elliptical/cli/arguments.h"
#include "elliptical/tasks/task.h"

namespace elliptical::cli {
namespace {

/// RunError where the page would be empty: a good one may be there.
void check_worth_writing(const elliptical::report::RunCollection& collection,
                         const std::filesystem::path& output) {
  const auto problems = [&] {
    std::string text;
    for (const std::string& problem : collection.problems) {
      text += (text.empty() ? "" : "; ") + problem;
    }
    return text;
  };
  const std::string kept = "nothing is written to " + output.string();
  if (collection.runs.empty()) {
    throw RunError(fmt::format(
        "report: must be given a run folder, one with config.toml and records.jsonl, or "
        "a folder with some in it (at most four levels deep), got none: {} ({})",
        problems(), kept));
  }
  const auto is_empty = [](const elliptical::report::RunData& run) {
    return run.records.empty() && run.log.empty();
  };
  if (std::all_of(collection.runs.begin(), collection.runs.end(), is_empty)) {
    throw RunError(fmt::format("report: a run must have measured something, none has: {} ({})",
                               problems(), kept));
  }
}

}  // namespace

void write_report(ReportRequest request) {
  request.page.version = ELLIPTICAL_VERSION;
  for (const std::string& word : request.words) {
    request.page.command += " " + shell_word(word);
  }
  const auto collection = elliptical::report::read_runs(request.folders, tasks::measure_table());
  check_worth_writing(collection, request.output);
  for (const std::string& line : collection.folders_without_runs) std::cerr << line << "\n";
  const auto comparison = elliptical::report::compare_runs(collection.runs, request.comparison);
  const std::string page = elliptical::report::make_report(collection, comparison, request.page);
  write_file_atomically(request.output, page);
  std::cout << fmt::format("{}: {} run{}, {:.1f} MB\n", request.output.string(),
                           collection.runs.size(), collection.runs.size() == 1 ? "" : "s",
                           static_cast<double>(page.size()) / 1e6);
}

int report(const Arguments& arguments) {
  CLI::App app(
      "Runs as one HTML file: comparison, curves, the heads and their metric. Opens without a "
      "network.",
      "report");
  ReportRequest request{.folders = {}, .output = "report.html", .words = arguments};
  std::filesystem::path bench;
  app.add_option("DIR", request.folders, "folders of runs, or folders with run folders in them")
      ->required();
  app.add_option("-o,--output", request.output, "the file to write")->capture_default_str();
  app.add_option("--reference", request.comparison.reference,
                 "name of the runs that others are compared with")
      ->capture_default_str();
  app.add_option("--bench", bench, "JSON of `elliptical bench --what variants`, to be drawn, too");
  app.add_option("--title", request.page.title, "heading of the report")->capture_default_str();
  if (!parse(app, arguments)) return 0;

  if (!bench.empty()) request.page.bench = elliptical::report::read_variant_bench(bench);
  write_report(request);
  return 0;
}

}  // namespace elliptical::cli
