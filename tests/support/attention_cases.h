// SPDX-License-Identifier: MIT
//
// Attention calls that between them use every option; each suite runs all of them.
#pragma once

#include <ATen/core/Tensor.h>

#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "elliptical/ops/attention.h"

namespace elliptical::support {

enum class Mask { kNone, kKeep, kAdd };

struct AttentionCase {
  std::string name;
  int64_t B = 2, H = 2, Hk = 2, N = 5, M = 5, D = 3, Dv = 4;
  std::vector<int64_t> metric;  ///< its shape; empty: none
  bool is_causal = false;
  std::optional<double> scale;
  Mask mask = Mask::kNone;
  std::vector<int64_t> mask_shape;
  std::vector<int64_t> key_lengths;
  double dropout_p = 0.0;
};

inline std::ostream& operator<<(std::ostream& stream, const AttentionCase& c) {
  return stream << c.name;
}

std::vector<AttentionCase> attention_cases();

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

/// max |a - b|, where equal infinities are no difference and NaN is an infinite one.
double max_difference(const at::Tensor& a, const at::Tensor& b);

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
