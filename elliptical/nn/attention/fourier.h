// SPDX-License-Identifier: MIT
//
// FourierFormer attention (Nguyen et al., NeurIPS 2022): a token weighs prod_d sinc(R_d (q_d -
// k_d))^4, with a learned bandwidth R per layer, one number or one per coordinate. A metric
// stretches both sides by sqrt(M): keys are stretched once for all queries, so it must have one row
// for the whole sequence, not the prefix metric of a causal model.
#pragma once

#include "elliptical/nn/attention/metric_source.h"

namespace elliptical::nn {

struct FourierAttentionOptions : Options, DistanceOptions {
  double radius = 2.0;
  bool radius_per_coordinate = false;
  double epsilon = 1e-6;

  void visit(FieldList& fields) override;
  std::unique_ptr<Options> clone() const override;
};

std::shared_ptr<HeadMixer> make_fourier_mixer(const FourierAttentionOptions& options,
                                              const AttentionShape& shape);
std::shared_ptr<Attention> make_fourier(const Options& options, const AttentionShape& shape);

}  // namespace elliptical::nn
