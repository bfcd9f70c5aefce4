// SPDX-License-Identifier: MIT
#include "elliptical/attack/loss.h"

#include <torch/torch.h>

#include <limits>

namespace elliptical::attack {
namespace {

constexpr double kTiny = 1e-12;  // keeps equal logits from dividing by 0

/// The largest logit of another class than the label's.
at::Tensor best_other(const at::Tensor& logits, const at::Tensor& y) {
  return logits.scatter(1, y.unsqueeze(1), -std::numeric_limits<double>::infinity()).amax(1);
}

/// The `count` largest logits, falling: (B, count).
at::Tensor largest(const at::Tensor& logits, int64_t count) {
  return std::get<0>(logits.topk(count, 1));
}

}  // namespace

at::Tensor logits_of(const at::Tensor& logits, const at::Tensor& classes) {
  return logits.gather(1, classes.unsqueeze(1)).squeeze(1);
}

at::Tensor cross_entropy(const at::Tensor& logits, const at::Tensor& y) {
  return -logits_of(logits.log_softmax(1), y);
}

at::Tensor margin(const at::Tensor& logits, const at::Tensor& y) {
  return logits_of(logits, y) - best_other(logits, y);
}

at::Tensor dlr(const at::Tensor& logits, const at::Tensor& y) {
  const at::Tensor top = largest(logits, 3);
  return -margin(logits, y) / (top.select(1, 0) - top.select(1, 2) + kTiny);
}

at::Tensor targeted_dlr(const at::Tensor& logits, const at::Tensor& y, const at::Tensor& target) {
  const at::Tensor top = largest(logits, 4);
  const at::Tensor scale = top.select(1, 0) - 0.5 * (top.select(1, 2) + top.select(1, 3)) + kTiny;
  return -(logits_of(logits, y) - logits_of(logits, target)) / scale;
}

at::Tensor is_correct(const at::Tensor& logits, const at::Tensor& y) {
  return logits.argmax(1) == y;
}

at::Tensor ranked_classes(const at::Tensor& logits, const at::Tensor& y) {
  return logits.scatter(1, y.unsqueeze(1), std::numeric_limits<double>::infinity())
      .argsort(/*stable=*/true, 1, /*descending=*/true);
}

at::Tensor plain_logits(const LogitsFn& logits, const at::Tensor& x) {
  const at::NoGradGuard no_grad;
  return logits(x).detach();
}

LossGradient loss_gradient(const LogitsFn& logits,
                           const at::Tensor& x,
                           const std::function<at::Tensor(const at::Tensor& logits)>& loss,
                           int64_t num_passes) {
  const at::AutoGradMode with_gradient(true);
  LossGradient sum;
  for (int64_t pass = 0; pass < num_passes; ++pass) {
    const at::Tensor leaf = x.detach().requires_grad_(true);
    const at::Tensor z = logits(leaf);
    TORCH_CHECK(z.requires_grad(),
                "attack: the logits must have a gradient with respect to the picture, these have "
                "none (attacks without gradients: spsa, square)");
    const at::Tensor losses = loss(z);
    // Pictures do not depend on each other, so the gradient of the sum holds those of all.
    const at::Tensor gradient = torch::autograd::grad({losses.sum()}, {leaf})[0];
    const at::NoGradGuard no_grad;
    if (pass == 0) {
      sum = {z.detach(), losses.detach(), gradient};
    } else {
      sum = {sum.logits + z, sum.loss + losses, sum.gradient + gradient};
    }
  }
  if (num_passes == 1) return sum;
  const at::NoGradGuard no_grad;
  const auto count = static_cast<double>(num_passes);
  return {sum.logits / count, sum.loss / count, sum.gradient / count};
}

}  // namespace elliptical::attack
