// SPDX-License-Identifier: MIT
#include "elliptical/data/archive.h"

#include <algorithm>
#include <deque>

#include "elliptical/base/errors.h"
#include "elliptical/base/files.h"
#include "elliptical/data/archive_impl.h"

namespace elliptical::data {
namespace {

/// The largest archive that is read; that of WikiText-103 has 190 MB.
constexpr uint64_t kMaxArchiveBytes = uint64_t{1} << 30;
constexpr size_t kMaxShownBytes = 100;

/// For a message: names in archives may hold anything.
std::string printable(std::string_view text) {
  std::string shown(text.substr(0, kMaxShownBytes));
  std::replace_if(
      shown.begin(), shown.end(), [](unsigned char c) { return c < ' ' || c > '~'; }, '?');
  return shown;
}

/// Whether a path would lead out of the folder that an archive is unpacked into.
bool leaves_archive(std::string_view path) {
  if (path.starts_with('/') || path.find('\0') != path.npos) return true;
  while (true) {
    const size_t end = std::min(path.find_first_of("/\\"), path.size());
    if (path.substr(0, end) == "..") return true;
    if (end == path.size()) return false;
    path.remove_prefix(end + 1);
  }
}

bool is_or_ends_with(std::string_view member, std::string_view name) {
  return member == name ||
         (member.ends_with(name) && member[member.size() - name.size() - 1] == '/');
}

}  // namespace

MemberChoice::MemberChoice(const std::string& archive,
                           const std::vector<WantedMember>& wanted,
                           const MemberSink& sink)
    : archive_(archive), wanted_(wanted), sink_(sink), found_(wanted.size()) {}

std::optional<size_t> MemberChoice::take(std::string_view member) {
  if (leaves_archive(member)) {
    fail("names of its members must stay inside of it, one is \"" + printable(member) + "\"");
  }
  for (size_t i = 0; i < wanted_.size(); ++i) {
    const auto& names = wanted_[i].names;
    if (found_[i] || std::none_of(names.begin(), names.end(), [&](const std::string& name) {
          return is_or_ends_with(member, name);
        })) {
      continue;
    }
    found_[i] = true;
    sink_(i, "");
    return i;
  }
  return std::nullopt;
}

void MemberChoice::check_size(size_t index, std::string_view member, uint64_t num_bytes) const {
  if (num_bytes <= wanted_[index].max_bytes) return;
  fail(member, "must hold at most " + std::to_string(wanted_[index].max_bytes) +
                   " bytes, says it holds " + std::to_string(num_bytes));
}

uint64_t MemberChoice::max_total_bytes() const {
  uint64_t total = 0;
  for (const WantedMember& member : wanted_) total += member.max_bytes;
  return total;
}

void MemberChoice::require_all() const {
  for (size_t i = 0; i < wanted_.size(); ++i) {
    if (found_[i]) continue;
    std::string what = "must hold " + wanted_[i].names[0];
    for (size_t j = 1; j < wanted_[i].names.size(); ++j)
      what += " (or " + wanted_[i].names[j] + ")";
    fail(what + ", does not");
  }
}

void MemberChoice::fail(const std::string& what) const { throw DataError(archive_ + ": " + what); }

void MemberChoice::fail(std::string_view member, const std::string& what) const {
  throw DataError(archive_ + ", " + printable(member) + ": " + what);
}

void read_archive(std::string_view bytes,
                  const std::string& name,
                  const std::vector<WantedMember>& wanted,
                  const MemberSink& sink) {
  MemberChoice choice(name, wanted, sink);
  if (bytes.starts_with("PK")) {
    read_zip(bytes, choice);
  } else {
    read_tar(*open_bytes(bytes, name), choice);
  }
  choice.require_all();
}

void unpack_archive(const std::filesystem::path& archive,
                    const std::vector<WantedMember>& wanted,
                    const std::vector<std::filesystem::path>& to) {
  const std::string bytes = read_file(archive, kMaxArchiveBytes);
  std::deque<FileWriter> files;  // in the order of the archive
  std::vector<FileWriter*> file_of(wanted.size());
  read_archive(bytes, archive.filename().string(), wanted,
               [&](size_t index, std::string_view piece) {
                 if (file_of[index] == nullptr) {
                   file_of[index] = &files.emplace_back(to[index], IfThere::kFail);
                 }
                 file_of[index]->write(piece);
               });
  for (FileWriter& file : files) file.finish();
}

}  // namespace elliptical::data
