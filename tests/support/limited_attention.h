// SPDX-License-Identifier: MIT
//
// A table of attention variants for tests, with one that can do nothing of what variants may leave
// out: two-sided, for so many tokens and no more, without padding, dropout or a map. Queries look
// at a few learned mixtures of the keys, as in Linformer (Wang et al., 2020):
//
//   out = softmax(q (E k)^T / sqrt(D)) E v        E (2, window), learned
#pragma once

#include <vector>

#include "tests/support/attention_variants.h"

namespace elliptical::support {

const std::vector<nn::AttentionEntry>& limited_attention_table();
const std::vector<OptionsEntry>& limited_attention_choices();

/// Its one variant.
AttentionVariant limited_attention();

}  // namespace elliptical::support
