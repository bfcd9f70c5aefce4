// SPDX-License-Identifier: MIT
#include "elliptical/store/failed_allocation.h"

#include <cstdlib>
#include <string>
#include <string_view>

namespace elliptical::store {

std::optional<double> failed_allocation(const std::exception& error) {
  const auto* torch = dynamic_cast<const c10::Error*>(&error);
  if (torch == nullptr) return std::nullopt;
  // "... can't allocate memory: you tried to allocate 4096 bytes. ..."
  const std::string text = torch->what_without_backtrace();
  constexpr std::string_view kTried = "you tried to allocate ";
  const size_t tried = text.find(kTried);
  if (text.find("can't allocate memory") != std::string::npos && tried != std::string::npos) {
    return std::strtod(text.c_str() + tried + kTried.size(), nullptr);
  }
  const bool overflows = text.find("Storage size calculation overflowed") != std::string::npos ||
                         text.find("numel: integer multiplication overflow") != std::string::npos;
  if (overflows) return 0;
  return std::nullopt;
}

}  // namespace elliptical::store
