// SPDX-License-Identifier: MIT
//
// attack.safetensors of a run: the first pictures before and after the strongest case of an attack,
// for the report. Only the strict profile has such pictures: the published one changes no pixels.
// The file names its case, so that a command that is given again keeps it, and it is replaced as a
// whole, so that it is never half a file.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "elliptical/run/attack_plan.h"
#include "elliptical/tasks/task.h"

namespace elliptical::run {

inline constexpr int64_t kMaxAttackPictures = 32;

/// The case that is shown: of the first attack of the plan that with the largest eps; of two with
/// the same eps the first. Nothing for the published profile, and where no eps is above 0.
std::optional<size_t> shown_case(const AttackPlan& plan);

/// What `--dump` and the file of the report say about a case.
std::map<std::string, std::string> attack_metadata(const AttackCase& each,
                                                   AttackProfile profile,
                                                   const std::vector<std::string>& class_names);

/// Collects the pictures of one case and writes them as soon as there are enough.
class AttackPictureFile {
 public:
  /// `digests` has one text for each case of the plan, which attacks `num_pictures`. No path:
  /// nothing is ever wanted.
  AttackPictureFile(const std::filesystem::path& path,
                    const AttackPlan& plan,
                    const std::vector<std::string>& digests,
                    const std::vector<std::string>& class_names,
                    int64_t num_pictures);

  /// Whether pictures of this case are still missing.
  bool wants(size_t index) const { return index == index_ && num_missing_ > 0; }
  /// Takes the next pictures: tensors by name, each with a row for each picture.
  void add(const tasks::Dump& pictures);
  /// There are no more pictures.
  void finish();

 private:
  void write();

  std::filesystem::path path_;
  std::optional<size_t> index_;
  int64_t num_missing_ = 0;
  std::map<std::string, std::string> metadata_;
  tasks::Dump pictures_;
};

}  // namespace elliptical::run
