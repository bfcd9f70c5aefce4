// SPDX-License-Identifier: MIT
//
// How commands read their arguments: CLI11, with our own answers to mistakes.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "elliptical/cli/commands.h"

namespace elliptical::cli {

/// Fills the variables bound to `app`. False: help was asked for and has been printed. Throws
/// UsageError with one line, which names the nearest option when one is unknown.
bool parse(CLI::App& app, const Arguments& arguments);

/// A validator for `option->check(...)`: one of `names`, or a message with the nearest of them.
CLI::Validator one_of(const std::vector<std::string>& names);

}  // namespace elliptical::cli
