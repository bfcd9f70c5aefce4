// SPDX-License-Identifier: MIT
#include "elliptical/attack/attack.h"

#include <torch/torch.h>

namespace elliptical::attack {
namespace {

void check_pictures(const Pictures& pictures) {
  const at::Tensor& x = pictures.x;
  TORCH_CHECK(x.dim() == 4 && at::isFloatingType(x.scalar_type()),
              "attack: pictures must be (B, C, H, W) floats, got ", x.sizes(), " ",
              x.scalar_type());
  TORCH_CHECK(pictures.y.dim() == 1 && pictures.y.size(0) == x.size(0) &&
                  pictures.y.scalar_type() == at::kLong,
              "attack: labels must be (B) = (", x.size(0), ") int64, got ", pictures.y.sizes(), " ",
              pictures.y.scalar_type());
  TORCH_CHECK(static_cast<int64_t>(pictures.keys.size()) == x.size(0),
              "attack: there must be one key a picture, got ", pictures.keys.size(), " for ",
              x.size(0));
  TORCH_CHECK(x.isfinite().all().item<bool>(), "attack: pictures must be finite, got nan or inf");
}

void check_logits(const at::Tensor& logits, const at::Tensor& y) {
  TORCH_CHECK(logits.dim() == 2 && logits.size(0) == y.size(0) && logits.size(1) >= 2,
              "attack: logits must be (B, K) with B = ", y.size(0), " and at least 2 classes, got ",
              logits.sizes());
  TORCH_CHECK(logits.isfinite().all().item<bool>(),
              "attack: logits of clean pictures must be finite, got nan or inf (does the model "
              "evaluate well?)");
  TORCH_CHECK(((y >= 0) & (y < logits.size(1))).all().item<bool>(), "attack: labels must be in 0..",
              logits.size(1) - 1, ", got ", y.min().item<int64_t>(), " to ",
              y.max().item<int64_t>());
}

}  // namespace

Pictures Pictures::select(const at::Tensor& indices) const {
  return {x.index_select(0, indices), y.index_select(0, indices), attack::select(keys, indices),
          clean_logits.index_select(0, indices)};
}

bool square_beats_gradients(int64_t num_broken_by_square, int64_t num_pictures) {
  return num_broken_by_square * 500 > num_pictures;
}

Problem Problem::select(const at::Tensor& indices) const {
  return {logits, pictures.select(indices), set.select(indices), findings};
}

at::Tensor Attack::perturb(const LogitsFn& logits,
                           Pictures pictures,
                           const Threat& threat,
                           Findings* findings) const {
  check_pictures(pictures);
  const FeasibleSet set(pictures.x, threat);
  if (pictures.x.size(0) == 0) return pictures.x;
  if (!pictures.clean_logits.defined()) {
    pictures.clean_logits = plain_logits(logits, pictures.x);
  }
  check_logits(pictures.clean_logits, pictures.y);
  Findings unwanted;
  Findings& noticed = findings != nullptr ? *findings : unwanted;
  if (threat.eps == 0) {
    noticed.robust_at_start = is_correct(pictures.clean_logits, pictures.y);
    return pictures.x;
  }
  const at::NoGradGuard no_grad;
  const at::Tensor x_adv = search({logits, pictures, set, noticed});
  TORCH_CHECK(x_adv.sizes() == pictures.x.sizes() && set.holds(x_adv).all().item<bool>(),
              "attack: adversarial pictures must lie within eps = ", threat.eps,
              " and in the box, got one that does not (a fault of the attack)");
  return x_adv;
}

}  // namespace elliptical::attack
