// SPDX-License-Identifier: MIT
#include "elliptical/measure/run_paths.h"

namespace elliptical::measure {

std::string RunPaths::name() const {
  const std::filesystem::path whole = std::filesystem::absolute(folder).lexically_normal();
  return whole.has_filename() ? whole.filename().string() : whole.parent_path().filename().string();
}

}  // namespace elliptical::measure
