// SPDX-License-Identifier: MIT
//
// x = |v - v_prev| / delta as in `difference`, pooled by the lower median: what a few wild tokens
// can not take over.
#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>

#include "elliptical/base/infinity.h"
#include "elliptical/ops/estimators/steps_impl.h"

namespace elliptical::ops::estimators {
namespace {

/// Lower median over the first `tokens` tokens that count, (B, H, 1, D).
at::Tensor median_of_first(const TokenValues& values, int64_t tokens) {
  const at::Tensor counted = values.counted.narrow(2, 0, tokens);
  const at::Tensor x = at::where(counted, values.x.narrow(2, 0, tokens), kInfinity);
  const at::Tensor count = counted.sum(2, /*keepdim=*/true);  // (B|1, 1, 1, 1)
  const at::Tensor middle = (count - 1).clamp_min(0).floor_divide(2);
  const at::Tensor sorted = std::get<0>(x.sort(2));
  const at::Tensor lower =
      sorted.gather(2, middle.expand_symint({x.sym_size(0), x.sym_size(1), 1, x.sym_size(3)}));
  return at::where(count > 0, lower, 0.0);
}

at::Tensor median_over_tokens(const TokenValues& values, MetricScope scope) {
  const int64_t N = values.x.sym_size(2).guard_int(__FILE__, __LINE__);
  if (N == 0) return mean_over_tokens(values, scope);
  if (scope == MetricScope::kSequence) return median_of_first(values, N);
  std::vector<at::Tensor> rows;
  for (int64_t n = 0; n < N; ++n) rows.push_back(median_of_first(values, n + 1));
  return at::cat(rows, 2);
}

}  // namespace

at::Tensor median(const MetricInputs& inputs, const MetricOptions& options) {
  return scale_rows(median_over_tokens(value_changes(inputs, options), options.scope),
                    options.scaling);
}

}  // namespace elliptical::ops::estimators
