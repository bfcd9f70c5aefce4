// SPDX-License-Identifier: MIT
#include "elliptical/ops/adaptive_softmax.h"

#include <ATen/Functions.h>
#include <c10/util/Exception.h>

#include "elliptical/ops/adaptive_softmax_impl.h"
#include "elliptical/ops/fused_layer_impl.h"
#include "elliptical/ops/layer_checks_impl.h"
#include "elliptical/ops/shape_text_impl.h"

namespace elliptical::ops {

std::vector<WordRange> word_ranges(const AdaptiveSoftmaxWeights& weights) {
  std::vector<WordRange> ranges;
  int64_t begin = 0;
  for (const int64_t cutoff : weights.cutoffs) {
    ranges.push_back({begin, cutoff});
    begin = cutoff;
  }
  ranges.push_back({begin, weights.weight.size(0)});
  return ranges;
}

int64_t cluster_column(const AdaptiveSoftmaxWeights& weights, int64_t cluster) {
  return weights.cutoffs[0] + static_cast<int64_t>(weights.cutoffs.size()) - cluster;
}

void check_adaptive_weights(const char* op,
                            const at::Tensor& hidden,
                            const AdaptiveSoftmaxWeights& weights) {
  TORCH_CHECK_TYPE(at::isFloatingType(hidden.scalar_type()), op,
                   ": hidden must have a floating point dtype, got ", hidden.scalar_type());
  TORCH_CHECK_VALUE(hidden.dim() == 2, op, ": hidden must be (T, C), got ", shape_text(hidden));
  TORCH_CHECK_VALUE(weights.weight.dim() == 2 && weights.weight.size(1) == hidden.size(1), op,
                    ": weight must be (V, C) = (V, ", hidden.size(1), "), got ",
                    shape_text(weights.weight));
  const int64_t V = weights.weight.size(0), C = hidden.size(1);
  const auto K = static_cast<int64_t>(weights.cutoffs.size());
  const auto check = [&](const char* name, const at::Tensor& tensor, at::IntArrayRef shape,
                         const char* letters) {
    TORCH_CHECK_TYPE(tensor.scalar_type() == hidden.scalar_type(), op, ": ", name,
                     " must have hidden's dtype ", hidden.scalar_type(), ", got ",
                     tensor.scalar_type());
    TORCH_CHECK_VALUE(tensor.device() == hidden.device(), op, ": ", name,
                      " must be on hidden's device ", hidden.device(), ", got ", tensor.device());
    TORCH_CHECK_VALUE(tensor.sizes() == shape, op, ": ", name, " must be ", letters, " = ", shape,
                      ", got ", shape_text(tensor));
  };
  check("weight", weights.weight, {V, C}, "(V, C)");
  check("bias", weights.bias, {V}, "(V)");
  if (K > 0) {
    check("cluster_weight", weights.cluster_weight, {K, C}, "(K, C)");
    check("cluster_bias", weights.cluster_bias, {K}, "(K)");
  }
  int64_t last = 0;
  for (const int64_t cutoff : weights.cutoffs) {
    TORCH_CHECK_VALUE(last < cutoff && cutoff < V, op,
                      ": cutoffs must increase within (0, V) = (0, ", V, "), got ", cutoff,
                      " after ", last);
    last = cutoff;
  }
}

void check_adaptive_nll(const at::Tensor& hidden,
                        const AdaptiveSoftmaxWeights& weights,
                        const at::Tensor& targets) {
  check_adaptive_weights("adaptive_nll", hidden, weights);
  TORCH_CHECK_VALUE(targets.dim() == 1 && targets.size(0) == hidden.size(0),
                    "adaptive_nll: targets must be (T) = (", hidden.size(0), "), got ",
                    shape_text(targets));
  check_indices(targets, weights.weight.size(0), "adaptive_nll: targets", "V");
}

at::Tensor adaptive_nll(const at::Tensor& hidden,
                        const AdaptiveSoftmaxWeights& weights,
                        const at::Tensor& targets) {
  check_adaptive_nll(hidden, weights, targets);
  return fused_layer_applies(hidden) ? adaptive_nll_fused(hidden, weights, targets)
                                     : adaptive_nll_composite(hidden, weights, targets);
}

}  // namespace elliptical::ops
