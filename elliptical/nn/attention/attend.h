// SPDX-License-Identifier: MIT
//
// The attention op as mixers call it: causality, padding and dropout come from the pass, and
// what analyses want to see goes into the trace.
#pragma once

#include <functional>
#include <optional>

#include "elliptical/nn/attention/multi_head.h"

namespace elliptical::nn {

struct AttendOptions {
  std::optional<double> scale;  ///< of the logits; 1 / sqrt(D) when absent
  double dropout = 0.0;         ///< of probabilities, in training
  bool leaves_trace = true;     ///< false: the caller does, of other heads than it hands over
};

/// Which keys a query sees, bool (N, M) or, with padding, (B, 1, N, M).
at::Tensor visible_keys(int64_t num_queries, int64_t num_keys, const Pass& pass);

/// The probabilities, (B, H, N, M); rows that see nothing are 0.
at::Tensor attention_map(const HeadMixer::Heads& heads,
                         const std::optional<at::Tensor>& metric,
                         const AttendOptions& options,
                         const Pass& pass);

/// With a trace: leaves queries, keys, values, the metric where there is one, and what `map` gives,
/// (B, H, N, M).
void leave_trace(const HeadMixer::Heads& heads,
                 const std::optional<at::Tensor>& metric,
                 const std::function<at::Tensor()>& map,
                 const Pass& pass);

/// (B, H, N, D), or (B, H, num_kept, D) where fewer tokens are kept; leaves a trace. The result has
/// the same bits with and without.
at::Tensor attend(const HeadMixer::Heads& heads,
                  const std::optional<at::Tensor>& metric,
                  const AttendOptions& options,
                  const Pass& pass);

}  // namespace elliptical::nn
