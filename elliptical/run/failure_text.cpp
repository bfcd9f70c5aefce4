// SPDX-License-Identifier: MIT
#include "elliptical/run/failure_text.h"

#include <c10/util/Exception.h>

#include <filesystem>
#include <new>
#include <stdexcept>

#include "elliptical/base/available_memory.h"
#include "elliptical/store/failed_allocation.h"

namespace elliptical::run {

std::string failure_text(const std::exception& error, bool debug) {
  if (dynamic_cast<const std::bad_alloc*>(&error) != nullptr ||
      dynamic_cast<const std::length_error*>(&error) != nullptr) {
    return allocation_failure_text(0);
  }
  const auto* files = dynamic_cast<const std::filesystem::filesystem_error*>(&error);
  if (files != nullptr && files->code() == std::errc::not_enough_memory) {
    return allocation_failure_text(0);
  }
  const auto* torch = dynamic_cast<const c10::Error*>(&error);
  if (torch == nullptr || debug) return error.what();
  if (const auto bytes = store::failed_allocation(error)) return allocation_failure_text(*bytes);
  return torch->what_without_backtrace();
}

}  // namespace elliptical::run
