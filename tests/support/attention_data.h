// SPDX-License-Identifier: MIT
//
// The tensors of an attention case, and the results and gradients of a call on them.
#pragma once

#include <ATen/core/Tensor.h>

#include <optional>
#include <tuple>
#include <vector>

#include "bench/attention_case.h"
#include "elliptical/ops/attention.h"

namespace elliptical::support {

using bench::AttentionCase;

/// Random inputs of a case, the same at every call.
struct AttentionData {
  at::Tensor q, k, v;
  std::optional<at::Tensor> metric;
  ops::AttentionOptions options;

  /// A generator in its first state, so that calls with dropout repeat.
  ops::AttentionOptions fresh_options() const;
  /// The same numbers in another dtype.
  AttentionData to(at::ScalarType type) const;
};

AttentionData make_data(const AttentionCase& c, at::ScalarType type = at::kFloat);

/// Results of a call and gradients of a fixed combination of them, for comparisons between paths.
struct AttentionRun {
  at::Tensor out, lse;
  std::vector<at::Tensor> gradients;  ///< dq, dk, dv and, with a metric, d_metric
};

using AttentionFunction = std::tuple<at::Tensor, at::Tensor> (*)(const at::Tensor&,
                                                                 const at::Tensor&,
                                                                 const at::Tensor&,
                                                                 const std::optional<at::Tensor>&,
                                                                 const ops::AttentionOptions&);

AttentionRun run(AttentionFunction function, const AttentionData& data);

}  // namespace elliptical::support
