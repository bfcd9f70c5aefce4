// SPDX-License-Identifier: MIT
#include "elliptical/attack/fab.h"

#include <torch/torch.h>

#include <algorithm>

#include "elliptical/attack/hyperplane_impl.h"
#include "elliptical/attack/survivors_impl.h"
#include "elliptical/base/option_limits.h"

namespace elliptical::attack {
namespace {

constexpr double kNone = 1e10;         // distance where nothing was found
constexpr double kLeastLength = 1e-8;  // of a step, where both steps are 0

at::Tensor max_norm(const at::Tensor& v) { return v.flatten(1).abs().amax(1); }

/// The box of a threat as (1, n) rows, for flattened pictures.
std::optional<at::Tensor> flat_bound(const std::optional<at::Tensor>& bound, const at::Tensor& x) {
  if (!bound) return std::nullopt;
  return bound->expand(x.sizes().slice(1)).reshape({1, -1});
}

class FabT : public Attack {
 public:
  explicit FabT(const FabOptions& options) : options_(options) {}
  int64_t max_passes(int64_t num_classes) const override {
    return num_targets(num_classes) * options_.steps * 2;
  }

 protected:
  at::Tensor search(const Problem& problem) const override {
    const int64_t num_attempts = num_targets(problem.pictures.clean_logits.size(1));
    return try_in_turn(problem, num_attempts, [this](int64_t i, const Problem& survivors) {
      const Pictures& pictures = survivors.pictures;
      const at::Tensor target = ranked_classes(pictures.clean_logits, pictures.y).select(1, i + 1);
      const Nearest nearest = find_nearest(survivors, target, options_);
      return Attempt{nearest.x, (nearest.distance < kNone) & survivors.set.in_ball(nearest.x)};
    });
  }

 private:
  int64_t num_targets(int64_t num_classes) const {
    return std::min(options_.num_targets, num_classes - 1);
  }
  FabOptions options_;
};

}  // namespace

Nearest find_nearest(const Problem& problem, const at::Tensor& target, const FabOptions& options) {
  FeasibleSet set = problem.set;
  const std::optional<at::Tensor> low = flat_bound(set.threat.low, set.x);
  const std::optional<at::Tensor> high = flat_bound(set.threat.high, set.x);
  Nearest nearest{set.x.clone(), at::full({set.x.size(0)}, kNone, set.x.options())};
  // Of the pictures that are still worked on.
  at::Tensor place = at::arange(set.x.size(0));
  at::Tensor y = problem.pictures.y, t = target, x = set.x;
  for (int64_t step = 0; step < options.steps && place.numel() > 0; ++step) {
    const LossGradient here = loss_gradient(
        problem.logits, x, [&](const at::Tensor& z) { return logits_of(z, t) - logits_of(z, y); });
    // The linearised boundary is <w, v> = b.
    const at::Tensor w = here.gradient.flatten(1);
    const at::Tensor b = (w * x.flatten(1)).sum(1) - here.loss;
    const at::Tensor from_x = step_to_hyperplane(x.flatten(1), w, b, low, high).view_as(x);
    const at::Tensor from_clean = step_to_hyperplane(set.x.flatten(1), w, b, low, high).view_as(x);
    const at::Tensor length_x = max_norm(from_x).clamp_min(kLeastLength);
    const at::Tensor length_clean = max_norm(from_clean).clamp_min(kLeastLength);
    const at::Tensor alpha =
        per_picture((length_x / (length_x + length_clean)).clamp_max(options.alpha_max));
    x = set.into_box((1 - alpha) * (x + options.eta * from_x) +
                     alpha * (set.x + options.eta * from_clean));

    const at::Tensor wrong = is_correct(plain_logits(problem.logits, x), y).logical_not();
    const at::Tensor distance = max_norm(x - set.x);
    const at::Tensor nearer = wrong & (distance < nearest.distance.index_select(0, place));
    const at::Tensor which = nearer.nonzero().squeeze(1);
    const at::Tensor places = place.index_select(0, which);
    nearest.x.index_copy_(0, places, x.index_select(0, which));
    nearest.distance.index_copy_(0, places, distance.index_select(0, which));
    const at::Tensor broken = wrong & set.in_ball(x);
    x = at::where(per_picture(wrong), set.x + options.beta * (x - set.x), x);
    if (options.stop_when_broken && broken.any().item<bool>()) {
      const at::Tensor kept = broken.logical_not().nonzero().squeeze(1);
      set = set.select(kept);
      for (at::Tensor* tensor : {&place, &y, &t, &x}) *tensor = tensor->index_select(0, kept);
    }
  }
  return nearest;
}

void FabOptions::visit(FieldList& fields) {
  fields.add("steps", steps, "steps of a run", between(1, kMostPasses));
  fields.add("num_targets", num_targets, "classes that are tried, most likely first",
             between(1, kMostPasses));
  fields.add("alpha_max", alpha_max, "largest pull towards the clean picture", between(0, 1));
  fields.add("eta", eta, "how far steps go over the boundary", between(1, 1000));
  fields.add("beta", beta, "distance that is left after a step back from a misclassified picture",
             between(0, 1));
  fields.add("stop_when_broken", stop_when_broken,
             "leave a picture alone once it is misclassified within eps; false: look for a nearer");
}

std::unique_ptr<Attack> make_fab_t(const Options& options) {
  return std::make_unique<FabT>(dynamic_cast<const FabOptions&>(options));
}

}  // namespace elliptical::attack
