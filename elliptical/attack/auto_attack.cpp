// SPDX-License-Identifier: MIT
#include "elliptical/attack/auto_attack.h"

#include <torch/torch.h>

#include "elliptical/attack/survivors_impl.h"

namespace elliptical::attack {
namespace {

constexpr int64_t kEotPasses = 20;        // of version rand
constexpr int64_t kRandomisedPasses = 4;  // beside the one for clean logits

}  // namespace

std::string_view to_string(AutoAttackVersion version) {
  return version == AutoAttackVersion::kStandard ? "standard" : "rand";
}

void AutoAttackOptions::visit(FieldList& fields) {
  fields.add_choice("version",
                    {.names = {"standard", "rand"},
                     .get = [this] { return std::string(to_string(version)); },
                     .set =
                         [this](const std::string& name) {
                           version = name == "rand" ? AutoAttackVersion::kRand
                                                    : AutoAttackVersion::kStandard;
                           apgd.eot_passes = name == "rand" ? kEotPasses : 1;
                         },
                     .selects_fields = true},
                    "which attacks; rand: for models that draw random numbers");
  fields.add_group("apgd", apgd);
  if (version == AutoAttackVersion::kRand) return;
  fields.add_group("apgd_t", apgd_t);
  fields.add_group("fab", fab);
  fields.add_group("square", square);
}

AutoAttack::AutoAttack(const AutoAttackOptions& options) : options_(options) {
  members_.push_back({"apgd-ce", make_apgd_ce(options_.apgd)});
  if (options_.version == AutoAttackVersion::kRand) {
    members_.push_back({"apgd-dlr", make_apgd_dlr(options_.apgd)});
    return;
  }
  members_.push_back({"apgd-t", make_apgd_t(options_.apgd_t)});
  members_.push_back({"fab-t", make_fab_t(options_.fab)});
  members_.push_back({"square", make_square(options_.square)});
}

int64_t AutoAttack::max_passes(int64_t num_classes) const {
  int64_t sum = kRandomisedPasses;
  for (const Member& member : members_) {
    if (is_possible(member.name, num_classes)) sum += member.attack->max_passes(num_classes) + 1;
  }
  return sum;
}

at::Tensor AutoAttack::search(const Problem& problem) const {
  const Pictures& pictures = problem.pictures;
  Findings& findings = problem.findings;
  const int64_t num_classes = pictures.clean_logits.size(1);
  const bool is_standard = options_.version == AutoAttackVersion::kStandard;
  findings.robust_at_start = is_correct(pictures.clean_logits, pictures.y);
  findings.is_randomised = is_randomised(problem.logits, pictures.x, pictures.clean_logits);
  findings.looks_like_probabilities = looks_like_probabilities(pictures.clean_logits);
  findings.has_few_classes =
      is_standard ? num_classes < 4 || num_classes <= options_.apgd_t.num_targets : num_classes < 3;
  const auto attempt = [&](int64_t i, const Problem& survivors) {
    const Member& member = members_[static_cast<size_t>(i)];
    if (!is_possible(member.name, num_classes))
      return Attempt{survivors.pictures.x, at::zeros_like(survivors.pictures.y, at::kBool)};
    const at::Tensor x_adv = member.attack->search(survivors);
    const at::Tensor z = plain_logits(problem.logits, x_adv);
    return Attempt{x_adv, is_correct(z, survivors.pictures.y).logical_not()};
  };
  const auto after = [&](int64_t i, const at::Tensor& robust) {
    findings.stages.push_back({members_[static_cast<size_t>(i)].name, robust});
  };
  return try_in_turn(problem, static_cast<int64_t>(members_.size()), attempt, after);
}

bool is_possible(std::string_view member, int64_t num_classes) {
  return member == "apgd-t" ? num_classes >= 4 : member != "apgd-dlr" || num_classes >= 3;
}

bool is_randomised(const LogitsFn& logits, const at::Tensor& x, const at::Tensor& clean_logits) {
  constexpr double kLargestDifference = 1e-4;  // of logits scaled to length 1
  const auto unit = [](const at::Tensor& z) { return z / z.norm(2, {1}, true).clamp_min(1e-12); };
  for (int64_t pass = 0; pass < kRandomisedPasses; ++pass) {
    const at::Tensor again = plain_logits(logits, x);
    const at::Tensor change = (unit(again) - unit(clean_logits)).norm(2, {1});
    if ((change > kLargestDifference).any().item<bool>()) return true;
  }
  return false;
}

bool looks_like_probabilities(const at::Tensor& logits) {
  constexpr double kRounding = 1e-4;  // of sums of a thousand floats, with room
  return (logits >= 0).all().item<bool>() && (logits <= 1).all().item<bool>() &&
         ((logits.sum(1) - 1).abs() <= kRounding).all().item<bool>();
}

std::unique_ptr<Attack> make_auto_attack(const Options& options) {
  return std::make_unique<AutoAttack>(dynamic_cast<const AutoAttackOptions&>(options));
}

}  // namespace elliptical::attack
