// SPDX-License-Identifier: MIT
#include "elliptical/run/attack_pictures.h"

#include <torch/torch.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "elliptical/base/errors.h"
#include "elliptical/base/safetensors.h"
#include "elliptical/measure/circumstances.h"
#include "elliptical/store/tensor_files.h"

namespace elliptical::run {
namespace {

/// What the file that is there says about itself; "" where there is none that can be read.
std::string case_of_file(const std::filesystem::path& path) {
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored)) return "";
  try {
    const SafetensorsFile file(path);
    const auto found = file.header().metadata.find("case");
    return found == file.header().metadata.end() ? "" : found->second;
  } catch (const std::exception&) {
    return "";  // damaged: written anew
  }
}

}  // namespace

std::optional<size_t> shown_case(const AttackPlan& plan) {
  if (plan.profile != AttackProfile::kStrict || plan.cases.empty()) return std::nullopt;
  size_t shown = 0;
  for (size_t i = 1; i < plan.cases.size(); ++i) {
    const bool is_first_attack = plan.cases[i].attack.name() == plan.cases[0].attack.name();
    if (is_first_attack && plan.cases[i].eps > plan.cases[shown].eps) shown = i;
  }
  return plan.cases[shown].eps > 0 ? std::optional(shown) : std::nullopt;
}

std::map<std::string, std::string> attack_metadata(const AttackCase& each,
                                                   AttackProfile profile,
                                                   const std::vector<std::string>& class_names) {
  std::map<std::string, std::string> metadata = {{"attack", each.attack.name()},
                                                 {"eps", measure::eps_text(each.eps)},
                                                 {"profile", std::string(to_string(profile))}};
  if (!class_names.empty()) {
    // A folder may have any name: what is no UTF-8 is replaced.
    metadata["class_names"] =
        nlohmann::json(class_names).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  }
  return metadata;
}

AttackPictureFile::AttackPictureFile(const std::filesystem::path& path,
                                     const AttackPlan& plan,
                                     const std::vector<std::string>& digests,
                                     const std::vector<std::string>& class_names,
                                     int64_t num_pictures)
    : path_(path) {
  if (path.empty()) return;
  index_ = shown_case(plan);
  if (!index_) return;
  metadata_ = attack_metadata(plan.cases[*index_], plan.profile, class_names);
  const int64_t wanted = std::min(num_pictures, kMaxAttackPictures);
  metadata_["case"] = digests[*index_] + " " + std::to_string(wanted);
  if (case_of_file(path) != metadata_["case"]) num_missing_ = wanted;
}

void AttackPictureFile::add(const tasks::Dump& pictures) {
  int64_t taken = 0;
  for (const auto& [name, pieces] : pictures) {
    for (const at::Tensor& piece : pieces) {
      taken = std::min(piece.size(0), num_missing_);
      pictures_[name].push_back(piece.narrow(0, 0, taken));
    }
  }
  num_missing_ -= taken;
  if (num_missing_ == 0) write();
}

void AttackPictureFile::finish() {
  if (num_missing_ > 0 && !pictures_.empty()) write();
}

void AttackPictureFile::write() {
  store::NamedTensors tensors;
  for (const auto& [name, pieces] : pictures_) tensors.emplace_back(name, at::cat(pieces));
  store::replace_tensors(path_, tensors, metadata_);
}

}  // namespace elliptical::run
