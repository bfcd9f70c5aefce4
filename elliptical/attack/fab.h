// SPDX-License-Identifier: MIT
//
// Fast adaptive boundary attack, targeted (Croce and Hein 2020): looks for the nearest
// misclassified picture by stepping onto the linearised boundary between the label and a target
// class, pulled towards the clean picture. eps plays no part in the search: what was found counts
// only if it lies within eps. One run for each of the num_targets most likely classes.
#pragma once

#include "elliptical/attack/attack.h"

namespace elliptical::attack {

struct FabOptions : Options {
  int64_t steps = 100;
  int64_t num_targets = 9;
  double alpha_max = 0.1;
  double eta = 1.05;
  double beta = 0.9;
  bool stop_when_broken = true;
  void visit(FieldList& fields) override;
  std::unique_ptr<Options> clone() const override { return std::make_unique<FabOptions>(*this); }
};

std::unique_ptr<Attack> make_fab_t(const Options& options);

/// What one run of FAB found for n pictures.
struct Nearest {
  at::Tensor x;         ///< (n, C, H, W) the nearest misclassified picture; clean where none was
  at::Tensor distance;  ///< (n) its distance in the maximum norm; 1e10 where none was found
};

/// Towards the classes `target` (n).
Nearest find_nearest(const Problem& problem, const at::Tensor& target, const FabOptions& options);

}  // namespace elliptical::attack
