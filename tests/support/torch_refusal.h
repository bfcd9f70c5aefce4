// SPDX-License-Identifier: MIT
//
// What an op says when it refuses a call.
#pragma once

#include <c10/util/Exception.h>

#include <string>

namespace elliptical::support {

/// The message of the error that `call` throws, without torch's trace; "accepted" when it throws none.
template <class Error = c10::Error, class Call>
std::string refusal(const Call& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what_without_backtrace();
  }
  return "accepted";
}

}  // namespace elliptical::support
