// SPDX-License-Identifier: MIT
//
// What the commands around runs share: flags that several of them have, and how records are
// printed. What they do with runs is in room run.
#pragma once

#include <iosfwd>
#include <optional>
#include <string>
#include <vector>

#include "elliptical/cli/arguments.h"
#include "elliptical/run/evaluate.h"
#include "elliptical/run/run_options.h"

namespace elliptical::cli {

/// The program's name and version, as checkpoints carry them.
extern const char* const kProgram;

/// `--set` and `--smoke`: how a recipe is changed.
void add_overrides(CLI::App& app, run::RecipeRequest& recipe);

/// `--threads`, 0 for all cores.
void add_threads(CLI::App& app, int& threads);
void use_threads(int threads);

/// `--weights`: trained or ema; nothing where it is not given.
void add_weights(CLI::App& app, std::optional<run::Weights>& weights);

/// `--step`: which checkpoint; -1, the newest that can be used, unless said.
void add_step(CLI::App& app, int64_t& step);

/// Says of a smoke run that it is one.
void warn_of_smoke(const run::RunOptions& options, const run::LoopHooks& hooks);

/// Prints records: "table", "json" or "csv".
void print_records(std::ostream& stream,
                   const std::vector<Record>& records,
                   const std::string& format);

}  // namespace elliptical::cli
