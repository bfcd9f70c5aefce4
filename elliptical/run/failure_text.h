// SPDX-License-Identifier: MIT
//
// What a user reads when something was thrown.
#pragma once

#include <exception>
#include <string>

namespace elliptical::run {

/// The message of an exception on one line. Failed allocations, torch's and those of the standard
/// library, read `memory: 4.0 GB more were asked for and could not be had, ...`; other errors of
/// torch come without the places in its sources unless `debug`.
std::string failure_text(const std::exception& error, bool debug = false);

}  // namespace elliptical::run
