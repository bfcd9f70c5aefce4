// SPDX-License-Identifier: MIT
//
// Torch's failed allocations. They are its usual exceptions, told from others by their text alone;
// where damage is looked for, a lack of memory must have a type of its own.
#pragma once

#include <c10/util/Exception.h>

#include <exception>
#include <optional>

#include "elliptical/base/available_memory.h"

namespace elliptical::store {

/// How many bytes torch asked for in vain, 0: more than a size can say; nothing: `error` is about
/// something else.
std::optional<double> failed_allocation(const std::exception& error);

/// Calls `use`, and throws MemoryError where torch has no memory for it. Sizes that no machine has
/// are no lack of memory: whoever reads them reads nonsense.
template <class Use>
auto with_memory_errors(Use use) {
  try {
    return use();
  } catch (const c10::Error& error) {
    const std::optional<double> bytes = failed_allocation(error);
    if (bytes.value_or(0) == 0) throw;
    throw MemoryError(allocation_failure_text(*bytes));
  }
}

}  // namespace elliptical::store
