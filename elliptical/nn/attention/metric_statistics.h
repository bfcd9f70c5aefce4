// SPDX-License-Identifier: MIT
//
// What the metrics of a forward pass look like on average, collected while it runs when the context
// has somewhere to put it. Every row of a metric (one per token, or one per sequence) counts once.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <map>

namespace elliptical::nn {

class MetricStatistics {
 public:
  struct Layer {
    at::Tensor coordinate_sums;  ///< (H, D) double: sum over rows of m
    at::Tensor anisotropy_sums;  ///< (H) double: sum over rows of std over coordinates / mean
    int64_t num_rows = 0;
  };

  /// m (B, H, 1|N, D)
  void add(int64_t layer, const at::Tensor& m);
  const std::map<int64_t, Layer>& layers() const { return layers_; }

 private:
  std::map<int64_t, Layer> layers_;
};

}  // namespace elliptical::nn
