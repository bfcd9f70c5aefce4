// SPDX-License-Identifier: MIT
#include <torch/torch.h>

#include <algorithm>

#include "elliptical/attack/apgd_impl.h"

namespace elliptical::attack {
namespace {

constexpr double kNewPart = 0.75;  // of a step; the rest is momentum

/// Where `condition` (n) is true the first, else the second, picture by picture.
at::Tensor choose(const at::Tensor& condition, const at::Tensor& a, const at::Tensor& b) {
  return at::where(a.dim() == 4 ? per_picture(condition) : condition, a, b);
}

class ApgdRun {
 public:
  ApgdRun(const Problem& problem, const ApgdLoss& loss, const ApgdOptions& options)
      : problem_(problem), loss_(loss), options_(options), set_(problem.set) {}

  Attempt run(const at::Tensor& target,
              const PictureKeys& keys,
              const std::function<void(int64_t, const ApgdState&)>& look) {
    start(target, keys);
    if (look) look(0, state_);
    const std::vector<int64_t> checkpoints = apgd_checkpoints(options_.steps);
    int64_t since = 0;
    size_t checkpoint = 0;
    for (int64_t i = 0; i < options_.steps; ++i) {
      if (options_.stop_when_broken) drop_broken();
      if (state_.place.numel() == 0) break;
      step(i);
      ++since;
      if (checkpoint < checkpoints.size() && i + 1 == checkpoints[checkpoint]) {
        adapt(since);
        since = 0;
        ++checkpoint;
      }
      if (look) look(i + 1, state_);
    }
    return {found_, broken_};
  }

 private:
  void start(const at::Tensor& target, const PictureKeys& keys) {
    const Pictures& pictures = problem_.pictures;
    const int64_t n = pictures.x.size(0);
    const at::TensorOptions real = pictures.x.options();
    const at::Tensor noise =
        draw_uniform(keys, pictures.x.sizes().slice(1), pictures.x.scalar_type());
    const at::Tensor largest = per_picture(noise.abs().flatten(1).amax(1));
    found_ = pictures.x.clone();
    broken_ = at::zeros({n}, at::kBool);
    state_.place = at::arange(n);
    state_.y = pictures.y;
    state_.target = target;
    state_.x = set_.project(pictures.x + set_.threat.eps * noise / largest);
    state_.x_old = state_.x;
    state_.step = at::full({n, 1, 1, 1}, 2 * set_.threat.eps, real);
    state_.was_halved = at::ones({n}, at::kBool);
    state_.num_up = at::zeros({n}, at::kLong);
    const LossGradient here = evaluate();
    state_.gradient = here.gradient;
    state_.loss = at::zeros({n}, real);  // what the first step is compared with
    state_.best_x = state_.x;
    state_.best_gradient = here.gradient;
    state_.best_loss = state_.best_loss_before = here.loss;
  }

  /// Loss and gradient at x; iterates that are misclassified are kept, later ones over earlier.
  LossGradient evaluate() {
    const LossGradient here = loss_gradient(
        problem_.logits, state_.x,
        [&](const at::Tensor& z) { return loss_(z, state_.y, state_.target); },
        options_.eot_passes);
    const at::Tensor wrong = is_correct(here.logits, state_.y).logical_not().nonzero().squeeze(1);
    if (wrong.numel() > 0) {
      const at::Tensor places = state_.place.index_select(0, wrong);
      found_.index_copy_(0, places, state_.x.index_select(0, wrong));
      broken_.index_fill_(0, places, true);
    }
    return here;
  }

  void drop_broken() {
    const at::Tensor robust = broken_.index_select(0, state_.place).logical_not();
    if (robust.all().item<bool>()) return;
    const at::Tensor kept = robust.nonzero().squeeze(1);
    state_.select(kept);
    set_ = set_.select(kept);
  }

  void step(int64_t number) {
    const at::Tensor movement = state_.x - state_.x_old;
    state_.x_old = state_.x;
    at::Tensor next = set_.project(state_.x + state_.step * state_.gradient.sign());
    if (number > 0) {
      next = set_.project(state_.x + kNewPart * (next - state_.x) + (1 - kNewPart) * movement);
    }
    state_.x = next;
    const LossGradient here = evaluate();
    state_.gradient = here.gradient;
    state_.num_up += here.loss > state_.loss;
    state_.loss = here.loss;
    const at::Tensor better = here.loss > state_.best_loss;
    state_.best_x = choose(better, state_.x, state_.best_x);
    state_.best_gradient = choose(better, here.gradient, state_.best_gradient);
    state_.best_loss = choose(better, here.loss, state_.best_loss);
  }

  /// Halves the step and goes back to the best iterate where the loss rose too seldom in the last
  /// `since` steps, or where nothing better was found with a step that was not halved before.
  void adapt(int64_t since) {
    const at::Tensor seldom = state_.num_up <= options_.rho * static_cast<double>(since);
    const at::Tensor no_gain =
        state_.was_halved.logical_not() & (state_.best_loss_before >= state_.best_loss);
    const at::Tensor halve = seldom | no_gain;
    state_.step = choose(halve, state_.step / 2, state_.step);
    state_.x = choose(halve, state_.best_x, state_.x);
    state_.gradient = choose(halve, state_.best_gradient, state_.gradient);
    state_.was_halved = halve;
    state_.best_loss_before = state_.best_loss;
    state_.num_up = at::zeros_like(state_.num_up);
  }

  const Problem& problem_;
  const ApgdLoss& loss_;
  const ApgdOptions& options_;
  FeasibleSet set_;  ///< of the pictures in the state
  ApgdState state_;
  at::Tensor found_, broken_;  ///< of all pictures
};

}  // namespace

void ApgdState::select(const at::Tensor& indices) {
  for (at::Tensor* tensor :
       {&place, &y, &target, &x, &x_old, &gradient, &loss, &best_x, &best_gradient, &best_loss,
        &best_loss_before, &was_halved, &num_up, &step}) {
    *tensor = tensor->index_select(0, indices);
  }
}

std::vector<int64_t> apgd_checkpoints(int64_t steps) {
  const auto part = [steps](double ratio) {
    return std::max<int64_t>(static_cast<int64_t>(ratio * static_cast<double>(steps)), 1);
  };
  const int64_t shortest = part(0.06), shrinkage = part(0.03);
  std::vector<int64_t> checkpoints;
  int64_t period = part(0.22);
  for (int64_t at = period; at <= steps; at += period) {
    checkpoints.push_back(at);
    period = std::max(period - shrinkage, shortest);
  }
  return checkpoints;
}

Attempt run_apgd(const Problem& problem,
                 const ApgdLoss& loss,
                 const at::Tensor& target,
                 const PictureKeys& keys,
                 const ApgdOptions& options,
                 const std::function<void(int64_t, const ApgdState&)>& look) {
  return ApgdRun(problem, loss, options).run(target, keys, look);
}

}  // namespace elliptical::attack
