// SPDX-License-Identifier: MIT
#include "elliptical/base/reading_failed.h"

#include <cerrno>
#include <system_error>

#include "elliptical/base/available_memory.h"
#include "elliptical/base/errors.h"

namespace elliptical {

bool is_lack_of_resources(int code) { return code == EMFILE || code == ENFILE || code == ENOMEM; }

void throw_reading_failed(const std::filesystem::path& path, const char* action, int code) {
  const std::string text =
      path.string() + ": can not " + action + ": " + std::generic_category().message(code);
  if (!is_lack_of_resources(code)) throw DataError(text);
  throw ResourceError(text + (code == EMFILE ? " (raise ulimit -n)" : " (close other programs)"));
}

}  // namespace elliptical
