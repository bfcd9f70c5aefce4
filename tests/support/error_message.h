// SPDX-License-Identifier: MIT
//
// What an action says when it fails.
#pragma once

#include <string>

namespace elliptical::test {

/// The message of the exception of type Error that `action` throws; "no error" when it throws none.
/// Other exceptions go on, and fail the test.
template <class Error, class Action>
std::string error_message(Action action) {
  try {
    action();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace elliptical::test
