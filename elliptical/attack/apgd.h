// SPDX-License-Identifier: MIT
//
// Auto-PGD (Croce and Hein 2020): signed gradient ascent with momentum and a step that is halved at
// checkpoints where it does not help, without a step size to tune.
//
//   apgd-ce   cross entropy
//   apgd-dlr  DLR, which logits of any scale can not saturate
//   apgd-t    targeted DLR, one run for each of the num_targets classes with the largest clean
//             logits after the label's; what counts is any misclassification
#pragma once

#include "elliptical/attack/attack.h"

namespace elliptical::attack {

struct ApgdOptions : Options {
  int64_t steps = 100;
  int64_t eot_passes = 1;
  double rho = 0.75;
  bool stop_when_broken = true;
  void visit(FieldList& fields) override;
  std::unique_ptr<Options> clone() const override { return std::make_unique<ApgdOptions>(*this); }
};

struct ApgdTargetedOptions : ApgdOptions {
  int64_t num_targets = 9;
  void visit(FieldList& fields) override;
  std::unique_ptr<Options> clone() const override {
    return std::make_unique<ApgdTargetedOptions>(*this);
  }
};

std::unique_ptr<Attack> make_apgd_ce(const Options& options);
std::unique_ptr<Attack> make_apgd_dlr(const Options& options);
std::unique_ptr<Attack> make_apgd_t(const Options& options);

/// Steps (counted from 1) after which a run of `steps` looks whether to halve its step.
std::vector<int64_t> apgd_checkpoints(int64_t steps);

}  // namespace elliptical::attack
