// SPDX-License-Identifier: MIT
//
// Scaled and projected kernel density attention: KDE whose keys carry weights, those of the density
// of the keys below the fraction and those of the joint density of keys and values above it
// (kernel_density.h). Outliers are taken to spread a share of the mass evenly where the data are
// thin: the density is scaled by beta = 1 / (1 - outliers) and projected back on the densities
// that weights of keys can express (Vandermeulen and Scott 2014),
//
//   min_w  1/2 w^T G w - w^T q,  q = (beta / M) G 1,  w >= 0, sum_j w_j = 1
//
// with G_jl = exp(-s |x_j - x_l|^2) averaged over sequences and heads, so that all share one w per
// density, or (weights = "per-head") one such problem for each of them. Solved in double
// (simplex_qp.h); weights count as constant in the gradient.
//
// All tokens judge all keys, and a query normalizes the weights of the keys that it sees. In a
// causal model that sees the future and must be asked for with lookahead = true.
#pragma once

#include "elliptical/nn/attention/density_mixer.h"

namespace elliptical::nn {

struct SpkdeOptions : DensityOptions {
  double outliers = 0.1;
  bool per_head = false;
  bool lookahead = false;

  void visit(FieldList& fields) override;
  std::unique_ptr<Options> clone() const override;
};

struct ProjectedWeightOptions {
  double kernel_scale = 1.0;  ///< s
  double outliers = 0.1;
  bool per_head = false;              ///< each sequence and head has weights of its own
  std::optional<at::Tensor> lengths;  ///< (B): points from there on do not count
};

/// The weights w of points x (B, H, M, E), double, without gradient: (1, 1, M), or (B, H, M) with
/// 0 for padding. Throws c10::Error when the problem could not be solved.
at::Tensor projected_weights(const at::Tensor& x, const ProjectedWeightOptions& options);

/// Throws ConfigError when a causal model would see the future without having asked for it.
std::shared_ptr<HeadMixer> make_spkde_mixer(const SpkdeOptions& options,
                                            const AttentionShape& shape);
std::shared_ptr<Attention> make_spkde(const Options& options, const AttentionShape& shape);

}  // namespace elliptical::nn
