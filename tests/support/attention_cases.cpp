// SPDX-License-Identifier: MIT
#include "tests/support/attention_cases.h"

namespace elliptical::support {

std::vector<AttentionCase> attention_cases() {
  return {
      {.name = "plain"},
      {.name = "scale", .scale = 0.3},
      {.name = "metric_row", .metric = "BH1D"},
      {.name = "metric_per_query", .metric = "BHND"},
      {.name = "metric_shared_by_all", .metric = "111D"},
      {.name = "metric_shared_by_heads", .metric = "B1ND"},
      {.name = "metric_shared_by_batch", .metric = "1HND"},
      {.name = "causal", .metric = "BHND", .is_causal = true},
      {.name = "causal_more_keys",
       .sizes = {2, 2, 2, 3, 6, 3, 4},
       .metric = "BHND",
       .is_causal = true},
      {.name = "causal_fewer_keys",
       .sizes = {2, 2, 2, 6, 4, 3, 4},
       .metric = "BH1D",
       .is_causal = true},
      {.name = "grouped_heads", .sizes = {2, 4, 2, 5, 5, 3, 4}, .metric = "BH1D"},
      {.name = "one_key_head", .sizes = {2, 3, 1, 5, 5, 3, 4}, .is_causal = true},
      {.name = "mask_keep", .metric = "BH1D", .mask_keep = "BHNM"},
      {.name = "mask_keep_shared", .mask_keep = "NM"},
      {.name = "mask_keep_per_key", .mask_keep = "B11M"},
      {.name = "mask_keep_per_query", .mask_keep = "B1N1"},
      {.name = "mask_add", .metric = "BH1D", .mask_add = "BHNM"},
      {.name = "mask_add_shared", .mask_add = "B1NM"},
      {.name = "mask_add_causal", .mask_add = "1H1M", .is_causal = true},
      {.name = "lengths", .metric = "BH1D", .key_lengths = {3, 5}},
      {.name = "lengths_causal", .metric = "BHND", .key_lengths = {4, 0}, .is_causal = true},
      {.name = "lengths_cross", .sizes = {2, 2, 2, 4, 6, 3, 4}, .key_lengths = {6, 2}},
      {.name = "dropout", .metric = "BH1D", .dropout_p = 0.3},
      {.name = "dropout_causal", .metric = "BHND", .is_causal = true, .dropout_p = 0.5},
      {.name = "everything",
       .sizes = {2, 4, 2, 4, 6, 3, 4},
       .metric = "BHND",
       .mask_add = "B1NM",
       .key_lengths = {5, 6},
       .is_causal = true,
       .scale = 0.7,
       .dropout_p = 0.2},
      {.name = "one_of_each", .sizes = {1, 1, 1, 1, 1, 1, 1}},
      {.name = "no_queries", .sizes = {2, 2, 2, 0, 5, 3, 4}, .metric = "BH1D"},
      {.name = "no_keys", .sizes = {2, 2, 2, 5, 0, 3, 4}, .metric = "BH1D"},
      {.name = "no_batch", .sizes = {0, 2, 2, 5, 5, 3, 4}, .metric = "111D"},
      {.name = "no_heads", .sizes = {2, 0, 0, 5, 5, 3, 4}},
      {.name = "no_width", .sizes = {2, 2, 2, 5, 5, 0, 4}},
      {.name = "no_value_width", .sizes = {2, 2, 2, 5, 5, 3, 0}},
      {.name = "wider_than_a_vector", .sizes = {2, 2, 2, 19, 23, 17, 9}, .metric = "BHND"},
  };
}

}  // namespace elliptical::support
