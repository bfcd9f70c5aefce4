// SPDX-License-Identifier: MIT
#include <torch/torch.h>

#include "elliptical/attack/survivors_impl.h"

namespace elliptical::attack {

at::Tensor try_in_turn(const Problem& problem,
                       int64_t num_attempts,
                       const std::function<Attempt(int64_t, const Problem&)>& attempt,
                       const std::function<void(int64_t, const at::Tensor&)>& after) {
  const Pictures& pictures = problem.pictures;
  at::Tensor x_adv = pictures.x.clone();
  at::Tensor robust = is_correct(pictures.clean_logits, pictures.y);
  for (int64_t i = 0; i < num_attempts; ++i) {
    const at::Tensor survivors = robust.nonzero().squeeze(1);
    if (survivors.numel() > 0) {
      const Attempt result = attempt(i, problem.select(survivors));
      const at::Tensor broken = result.broken.nonzero().squeeze(1);
      const at::Tensor places = survivors.index_select(0, broken);
      x_adv.index_copy_(0, places, result.x.index_select(0, broken));
      robust = robust.index_fill(0, places, false);
    }
    if (after) after(i, robust);
  }
  return x_adv;
}

at::Tensor per_picture(const at::Tensor& numbers) { return numbers.view({-1, 1, 1, 1}); }

}  // namespace elliptical::attack
