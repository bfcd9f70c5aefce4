// SPDX-License-Identifier: MIT
//
// Kernel density attention: keys of length 1 and weights softmax_j(-s |q - k_j|^2), the estimator
// that the robust variants start from. As all keys have the same length this is
// softmax_j(2 s q^T k_j): plain attention on normalized keys when s = 1 / (2 sqrt(D)).
#pragma once

#include "elliptical/nn/attention/density_mixer.h"

namespace elliptical::nn {

struct KdeOptions : DensityOptions {
  std::unique_ptr<Options> clone() const override;
};

std::shared_ptr<HeadMixer> make_kde_mixer(const KdeOptions& options, const AttentionShape& shape);
std::shared_ptr<Attention> make_kde(const Options& options, const AttentionShape& shape);

}  // namespace elliptical::nn
