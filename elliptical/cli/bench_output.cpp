// SPDX-License-Identifier: MIT
#include "elliptical/cli/bench_output.h"

#include <fmt/format.h>
#include <unistd.h>

#include <iostream>

#include "elliptical/cli/table.h"

namespace elliptical::cli {

std::string machine_line(const Machine& machine) {
  return fmt::format("torch {}, SIMD {}, {} threads, {}", machine.torch_version, machine.simd,
                     machine.num_threads, machine.cpu);
}

void add_machine(const Machine& machine, nlohmann::ordered_json& record) {
  record["threads"] = machine.num_threads;
  record["simd"] = machine.simd;
  record["torch"] = machine.torch_version;
  record["version"] = ELLIPTICAL_VERSION;
  record["cpu"] = machine.cpu;
}

void show_bench_progress(size_t done, size_t total, const std::string& what) {
  static const bool is_terminal = isatty(STDERR_FILENO) != 0;
  const bool is_done = done == total;
  if (is_terminal) {
    std::cerr << "\r\x1b[K" << (is_done ? "" : fmt::format("[{}/{}] {}", done, total, what));
  } else if (!is_done) {
    std::cerr << fmt::format("[{}/{}] {}\n", done, total, what);
  }
  std::cerr << std::flush;
}

void print_bench_records(const nlohmann::ordered_json& records, const std::string& format) {
  if (format == "json") {
    std::cout << records.dump(2) << "\n";
  } else {
    print_csv(std::cout, records_table(records));
  }
}

}  // namespace elliptical::cli
