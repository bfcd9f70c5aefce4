// SPDX-License-Identifier: MIT
#include "tests/fuzz/scratch.h"

#include <stdlib.h>

#include <string>

#include "tests/fuzz/targets.h"

namespace elliptical::test {
namespace {

namespace fs = std::filesystem;

fs::path make_folder() {
  const fs::path memory = "/dev/shm";
  std::error_code ignored;
  std::string name =
      ((fs::is_directory(memory, ignored) ? memory : fs::temp_directory_path()) / "fuzz.XXXXXX")
          .string();
  require(::mkdtemp(name.data()) != nullptr, "there is a folder for files");
  return name;
}

}  // namespace

const fs::path& scratch() {
  struct Scratch {
    fs::path path = make_folder();
    ~Scratch() {
      std::error_code ignored;
      fs::remove_all(path, ignored);
    }
  };
  static const Scratch folder;
  return folder.path;
}

}  // namespace elliptical::test
