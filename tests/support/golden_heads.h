// SPDX-License-Identifier: MIT
//
// The input of the golden values: one head, N = 4, D = 2. Results of it were computed by
// hand-written loops outside this project, to 8 decimals.
#pragma once

#include <vector>

#include "elliptical/nn/attention/multi_head.h"

namespace elliptical::support {

/// q, k, v as (1, 1, 4, 2), double.
nn::HeadMixer::Heads golden_heads();
/// The values of the layer before.
at::Tensor golden_previous_v();

/// The second of two layers.
inline nn::AttentionShape golden_shape(bool is_causal) {
  return {.dim = 2, .num_heads = 1, .is_causal = is_causal, .layer = 1, .num_layers = 2};
}

/// Mixes the golden heads in double and in float and compares with 4 rows of 2.
void expect_golden(nn::HeadMixer& mixer, bool is_causal, std::vector<double> expected);

}  // namespace elliptical::support
