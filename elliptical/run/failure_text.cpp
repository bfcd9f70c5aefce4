// SPDX-License-Identifier: MIT
#include "elliptical/run/failure_text.h"

#include <c10/util/Exception.h>

#include <cstdlib>
#include <new>
#include <stdexcept>
#include <string_view>

#include "elliptical/base/available_memory.h"

namespace elliptical::run {

std::string failure_text(const std::exception& error, bool debug) {
  if (dynamic_cast<const std::bad_alloc*>(&error) != nullptr ||
      dynamic_cast<const std::length_error*>(&error) != nullptr) {
    return allocation_failure_text(0);
  }
  const auto* torch = dynamic_cast<const c10::Error*>(&error);
  if (torch == nullptr) return error.what();
  if (debug) return error.what();
  // What torch's allocator says is text only: "... you tried to allocate 4096 bytes. ..."
  const std::string text = torch->what_without_backtrace();
  constexpr std::string_view kTried = "you tried to allocate ";
  const size_t tried = text.find(kTried);
  if (text.find("can't allocate memory") != std::string::npos && tried != std::string::npos) {
    return allocation_failure_text(std::strtod(text.c_str() + tried + kTried.size(), nullptr));
  }
  const bool overflows = text.find("Storage size calculation overflowed") != std::string::npos ||
                         text.find("numel: integer multiplication overflow") != std::string::npos;
  return overflows ? allocation_failure_text(0) : text;
}

}  // namespace elliptical::run
