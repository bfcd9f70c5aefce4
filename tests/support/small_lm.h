// SPDX-License-Identifier: MIT
//
// A language model small enough for exact tests, with every part of the large one: clusters,
// several layers and heads.
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>

#include "elliptical/models/lm.h"
#include "tests/support/attention_variants.h"

namespace elliptical::support {

inline constexpr int64_t kSmallVocabulary = 50;

inline models::LmOptions small_lm_options(ChosenOptions attention) {
  models::LmOptions options{.num_layers = 3,
                            .dim = 16,
                            .num_heads = 4,
                            .feedforward_dim = 24,
                            .window = 12,
                            .dropout = 0.0,
                            .cutoffs = {20, 30, 40}};
  options.attention = std::move(attention);
  return options;
}

inline std::shared_ptr<models::Lm> make_small_lm(const models::LmOptions& options,
                                                 uint64_t seed = 1) {
  auto model = std::make_shared<models::Lm>(options, kSmallVocabulary);
  model->initialize(seed);
  return model;
}

inline std::shared_ptr<models::Lm> make_small_lm(const AttentionVariant& variant) {
  return make_small_lm(small_lm_options(variant.options()));
}

/// (B, N) tokens without structure, the same at every call.
at::Tensor some_tokens(int64_t B, int64_t N, int64_t first = 0);

}  // namespace elliptical::support
