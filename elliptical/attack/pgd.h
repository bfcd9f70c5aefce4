// SPDX-License-Identifier: MIT
//
// Projected gradient descent (Madry et al. 2018): signed gradient steps on the cross entropy from a
// random point of the ball; the last iterate is returned, whether it is the best or not.
//
//   x_0 = P(x + eps u), u ~ U(-1, 1);   x_{t+1} = P(x_t + step_ratio eps sign(grad CE(x_t)))
#pragma once

#include "elliptical/attack/attack.h"

namespace elliptical::attack {

struct PgdOptions : Options {
  int64_t steps = 20;
  double step_ratio = 0.15;
  bool random_start = true;
  void visit(FieldList& fields) override;
  std::unique_ptr<Options> clone() const override { return std::make_unique<PgdOptions>(*this); }
};

std::unique_ptr<Attack> make_pgd(const Options& options);

}  // namespace elliptical::attack
