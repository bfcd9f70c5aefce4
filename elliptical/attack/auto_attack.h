// SPDX-License-Identifier: MIT
//
// AutoAttack (Croce and Hein 2020): attacks that share no weakness, one after the other, each on
// the pictures that no earlier one broke. No parameter is to be tuned.
//
//   standard  apgd-ce, apgd-t, fab-t, square
//   rand      apgd-ce, apgd-dlr, gradients being means over 20 passes: for models that draw
//
// It also notices what makes a robust accuracy doubtful (Findings).
#pragma once

#include "elliptical/attack/apgd.h"
#include "elliptical/attack/attack.h"
#include "elliptical/attack/fab.h"
#include "elliptical/attack/square.h"

namespace elliptical::attack {

enum class AutoAttackVersion { kStandard, kRand };
std::string_view to_string(AutoAttackVersion version);

struct AutoAttackOptions : Options {
  AutoAttackVersion version = AutoAttackVersion::kStandard;
  ApgdOptions apgd;
  ApgdTargetedOptions apgd_t;
  FabOptions fab;
  SquareOptions square;
  void visit(FieldList& fields) override;
  std::unique_ptr<Options> clone() const override {
    return std::make_unique<AutoAttackOptions>(*this);
  }
};

class AutoAttack : public Attack {
 public:
  explicit AutoAttack(const AutoAttackOptions& options);
  int64_t max_passes(int64_t num_classes) const override;

  struct Member {
    std::string name;
    std::unique_ptr<Attack> attack;
  };
  /// In the order in which they run. Each alone on all pictures is AutoAttack's individual mode.
  const std::vector<Member>& members() const { return members_; }

 protected:
  at::Tensor search(const Problem& problem) const override;

 private:
  AutoAttackOptions options_;
  std::vector<Member> members_;
};

std::unique_ptr<Attack> make_auto_attack(const Options& options);

/// Whether one of its attacks can be done with so many classes; where it can not, it is skipped and
/// its stage tells what the attacks before it left. The loss of apgd-t is a ratio of four logits,
/// that of apgd-dlr of three.
bool is_possible(std::string_view member, int64_t num_classes);

/// Whether predictions or logits of the same pictures differ between passes: `clean_logits` and
/// four more.
bool is_randomised(const LogitsFn& logits, const at::Tensor& x, const at::Tensor& clean_logits);

/// Whether all logits lie in [0, 1] and sum to 1.
bool looks_like_probabilities(const at::Tensor& logits);

}  // namespace elliptical::attack
