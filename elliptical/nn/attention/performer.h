// SPDX-License-Identifier: MIT
//
// Performer attention: softmax attention with its kernel replaced by random features (favor.h), in
// time and memory linear in the number of tokens. A stream keeps F (D + 1) numbers per head instead
// of keys and values. The features are a function of `seed` and the layer: nothing about them is
// saved. Dropout of probabilities does not exist here: there are no probabilities to drop. A metric
// M stretches queries and keys by sqrt(M); a key is stretched once for all queries, so the metric
// must have one row for the whole sequence: not the prefix metric of a causal model.
#pragma once

#include "elliptical/nn/attention/favor.h"
#include "elliptical/nn/attention/metric_source.h"

namespace elliptical::nn {

struct PerformerOptions : Options, DistanceOptions {
  std::string preset = "textbook";
  int64_t num_features = 64;  ///< m; hyperbolic features are twice as many
  FavorProjection projection = FavorProjection::kOrthogonal;
  FavorOptions favor;
  std::string logit_scale = "sqrt";  ///< of q . k: 1 / sqrt(D), "none": 1, "dim": 1 / D
  bool redraw = false;
  bool count_padding = false;
  int64_t seed = 0;

  void visit(FieldList& fields) override;
  std::unique_ptr<Options> clone() const override;
  /// Sets the fields that a preset is about; the others return to their defaults.
  void use_preset(const std::string& name);
};

/// `W` (m, D) instead of one drawn from the seed, for tests with known numbers.
std::shared_ptr<HeadMixer> make_performer_mixer(const PerformerOptions& options,
                                                const AttentionShape& shape,
                                                at::Tensor W = {});
std::shared_ptr<Attention> make_performer(const Options& options, const AttentionShape& shape);

}  // namespace elliptical::nn
