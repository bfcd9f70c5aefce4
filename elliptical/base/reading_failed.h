// SPDX-License-Identifier: MIT
//
// What it means that a file could not be read. Most reasons lie in the file or in its folder; some
// lie in the system, and whoever looks for damage must not mistake these for it.
#pragma once

#include <filesystem>

namespace elliptical {

/// Whether an errno says that the system is short of memory or of open files.
bool is_lack_of_resources(int code);

/// Throws DataError, or ResourceError (available_memory.h) for a lack of resources:
///     PATH: can not ACTION: Too many open files (raise ulimit -n)
[[noreturn]] void throw_reading_failed(const std::filesystem::path& path,
                                       const char* action,
                                       int code);

}  // namespace elliptical
