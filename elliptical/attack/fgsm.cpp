// SPDX-License-Identifier: MIT
#include "elliptical/attack/fgsm.h"

#include <torch/torch.h>

namespace elliptical::attack {
namespace {

class Fgsm : public Attack {
 public:
  int64_t max_passes(int64_t) const override { return 1; }

 protected:
  at::Tensor search(const Problem& problem) const override {
    const Pictures& pictures = problem.pictures;
    const LossGradient at_x = loss_gradient(problem.logits, pictures.x, [&](const at::Tensor& z) {
      return cross_entropy(z, pictures.y);
    });
    return problem.set.corner(at_x.gradient);
  }
};

}  // namespace

std::unique_ptr<Attack> make_fgsm(const Options&) { return std::make_unique<Fgsm>(); }

}  // namespace elliptical::attack
