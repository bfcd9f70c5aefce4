// SPDX-License-Identifier: MIT
//
// How much memory a program may still take, so that work that can not fit is refused with a number
// before it starts instead of being killed in the middle. Nothing is reserved: an estimate is held
// against what is free at that moment.
#pragma once

#include <filesystem>
#include <optional>
#include <stdexcept>
#include <string>

namespace elliptical {

/// Memory that is free for this process, and what sets that bound.
struct AvailableMemory {
  double bytes = 0;
  std::string bound;  ///< "the machine has 5.2 GB free", "its control group leaves 1.0 GB", ...
};

/// The least of what the machine has free (with swap), what the control groups of the process
/// leave, what its address space may still grow by, and ELLIPTICAL_MEMORY. Nothing where none is
/// known, or where ELLIPTICAL_MEMORY=none. Files are looked up below `root`, for tests.
std::optional<AvailableMemory> available_memory(const std::filesystem::path& root = "/");

/// The system is short of what it had before and may have again: memory, open files. That says
/// nothing about the file that was being read, so no such failure may pass for damage. Exit status
/// 1.
struct ResourceError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// The system has not the memory that was asked for.
struct MemoryError : ResourceError {
  using ResourceError::ResourceError;
};

/// Throws MemoryError when `bytes` are more than there are:
///     SUBJECT: needs about 3.2 TB of memory, the machine has 5.2 GB free (ADVICE, or
///     ELLIPTICAL_MEMORY=none to try all the same)
void require_memory(double bytes, const std::string& subject, const std::string& advice);

/// "5.2 GB", in powers of 1000.
std::string bytes_text(double bytes);

/// What a failed allocation says to a user: how much was asked for, 0: not known, what is free, and
/// what can be done.
std::string allocation_failure_text(double bytes);

}  // namespace elliptical
