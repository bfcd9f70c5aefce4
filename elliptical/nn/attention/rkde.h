// SPDX-License-Identifier: MIT
//
// Robust kernel density attention: KDE whose keys carry weights (robust_weights.h), those of the
// density of the keys below the fraction and those of the joint density of keys and values above
// it. Gradients pass through the weights. Rows of the attention need not sum to 1.
//
// In a causal model every key is judged once, among the tokens up to it (scope = "prefix"), and a
// query normalizes the weights of the keys that it sees. In a two-sided model all tokens judge all
// keys (scope = "sequence"), the form of the literature; in a causal model that sees the future and
// must be asked for with lookahead = true.
//
// form = "released" is what the public code computes on pictures; its language model's weights come
// out equal, which is kde, so a causal model refuses the word.
#pragma once

#include "elliptical/nn/attention/density_mixer.h"
#include "elliptical/nn/attention/robust_weights.h"

namespace elliptical::nn {

struct RkdeOptions : DensityOptions {
  RobustForm form = RobustForm::kLiterature;
  RobustLoss loss = RobustLoss::kHuber;
  double threshold = 0.2;
  int64_t num_iterations = 1;
  std::optional<ops::MetricScope> scope;  ///< absent: prefix in causal models, else sequence
  bool lookahead = false;

  void visit(FieldList& fields) override;
  std::unique_ptr<Options> clone() const override;
};

/// Throws ConfigError when a causal model would see the future without having asked for it, or has
/// the released form.
std::shared_ptr<HeadMixer> make_rkde_mixer(const RkdeOptions& options, const AttentionShape& shape);
std::shared_ptr<Attention> make_rkde(const Options& options, const AttentionShape& shape);

}  // namespace elliptical::nn
