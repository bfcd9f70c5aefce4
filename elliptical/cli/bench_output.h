// SPDX-License-Identifier: MIT
//
// What all benches print alike: the machine above a table, and records that carry it.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "elliptical/cli/machine.h"

namespace elliptical::cli {

/// "torch 2.13.0, SIMD avx3, 2 threads, AMD EPYC"
std::string machine_line(const Machine& machine);

/// Adds threads, simd, torch, version and cpu, in this order.
void add_machine(const Machine& machine, nlohmann::ordered_json& record);

/// How far a bench is, on stderr: one line that overwrites itself on a terminal, plain lines
/// elsewhere.
void show_bench_progress(size_t done, size_t total, const std::string& what);

/// An array of flat records as "json" or "csv".
void print_bench_records(const nlohmann::ordered_json& records, const std::string& format);

}  // namespace elliptical::cli
