// SPDX-License-Identifier: MIT
//
// Position-aware attention scaling (Mao et al., "Towards Robust Vision Transformer", CVPR 2022): a
// learned gate for each head and pair of positions multiplies the logits,
//
//   softmax_j(sigmoid(W_ij) q_i^T M k_j / sqrt(D)) v_j,        W (H, window, window), starts at 0
//
// with keys of length 1 in the form that is trained on top of DeiT. A gate belongs to positions, so
// the number of tokens is bounded by the window. M is there with distance = "elliptical". The map
// is computed as such: time and memory are quadratic in the number of tokens, as the gate is.
#pragma once

#include "elliptical/nn/attention/metric_source.h"

namespace elliptical::nn {

struct RvtAttentionOptions : Options, DistanceOptions {
  bool normalize_keys = true;
  std::optional<int64_t> gated_layers;  ///< all when absent
  std::optional<int64_t> window;        ///< of the gate; the model's when absent

  void visit(FieldList& fields) override;
  std::unique_ptr<Options> clone() const override;
};

/// Throws ConfigError when the window is not known.
std::shared_ptr<HeadMixer> make_rvt_mixer(const RvtAttentionOptions& options,
                                          const AttentionShape& shape);
std::shared_ptr<Attention> make_rvt(const Options& options, const AttentionShape& shape);

}  // namespace elliptical::nn
