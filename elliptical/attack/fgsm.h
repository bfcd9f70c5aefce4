// SPDX-License-Identifier: MIT
//
// Fast gradient sign method (Goodfellow et al. 2015): one step to the corner of the ball that the
// gradient of the cross entropy points to, x + eps sign(g), projected onto the box; sign(0) = 0.
#pragma once

#include "elliptical/attack/attack.h"

namespace elliptical::attack {

struct FgsmOptions : Options {
  void visit(FieldList&) override {}
  std::unique_ptr<Options> clone() const override { return std::make_unique<FgsmOptions>(*this); }
};

std::unique_ptr<Attack> make_fgsm(const Options& options);

}  // namespace elliptical::attack
