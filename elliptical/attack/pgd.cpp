// SPDX-License-Identifier: MIT
#include "elliptical/attack/pgd.h"

#include <torch/torch.h>

#include "elliptical/base/option_limits.h"

namespace elliptical::attack {
namespace {

class Pgd : public Attack {
 public:
  explicit Pgd(const PgdOptions& options) : options_(options) {}
  int64_t max_passes(int64_t) const override { return options_.steps; }

 protected:
  at::Tensor search(const Problem& problem) const override {
    const Pictures& pictures = problem.pictures;
    const FeasibleSet& set = problem.set;
    const double eps = set.threat.eps;
    at::Tensor x = set.project(pictures.x);
    if (options_.random_start) {
      const at::Tensor noise =
          draw_uniform(derive(pictures.keys, "pgd"), pictures.x.sizes().slice(1), x.scalar_type());
      x = set.project(pictures.x + eps * noise);
    }
    const auto loss = [&](const at::Tensor& z) { return cross_entropy(z, pictures.y); };
    for (int64_t step = 0; step < options_.steps; ++step) {
      const LossGradient here = loss_gradient(problem.logits, x, loss);
      x = set.project(x + options_.step_ratio * eps * here.gradient.sign());
    }
    return x;
  }

 private:
  PgdOptions options_;
};

}  // namespace

void PgdOptions::visit(FieldList& fields) {
  fields.add("steps", steps, "gradient steps", between(1, kMostPasses));
  fields.add("step_ratio", step_ratio, "length of a step / eps", above(0, 1000));
  fields.add("random_start", random_start, "start at a random point of the ball, else at x");
}

std::unique_ptr<Attack> make_pgd(const Options& options) {
  return std::make_unique<Pgd>(dynamic_cast<const PgdOptions&>(options));
}

}  // namespace elliptical::attack
