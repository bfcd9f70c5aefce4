// SPDX-License-Identifier: MIT
//
// Convolutions and batch norms on maps (B, C, H, W), with the parameter and buffer names that
// published checkpoints have: weight, bias; running_mean, running_var.
#pragma once

#include <torch/nn/module.h>

namespace elliptical::nn {

class Convolution : public torch::nn::Module {
 public:
  struct Options {
    int64_t stride = 1, padding = 0, groups = 1;
    bool with_bias = true;
  };
  Convolution(int64_t in_channels, int64_t out_channels, int64_t kernel, Options options);

  at::Tensor forward(const at::Tensor& map) const;
  /// A convolution with kernel 1 on tokens (B, N, C) -> (B, N, out).
  at::Tensor on_tokens(const at::Tensor& x) const;

 private:
  Options options_;
  at::Tensor weight_, bias_;  ///< (out, in / groups, kernel, kernel), (out)
};

/// Batch norm: in training by the statistics of the batch, which also move the running ones by a
/// tenth; in evaluation by the running ones. eps 1e-5.
class BatchNorm : public torch::nn::Module {
 public:
  explicit BatchNorm(int64_t channels);

  at::Tensor forward(const at::Tensor& map, bool training) const;
  /// Tokens (B, N, C).
  at::Tensor on_tokens(const at::Tensor& x, bool training) const;

 private:
  at::Tensor weight_, bias_, running_mean_, running_var_;  ///< (C)
};

/// Tokens (B, side^2, C), row by row, as a map (B, C, side, side), and back.
at::Tensor map_of_tokens(const at::Tensor& x, int64_t side);
at::Tensor tokens_of_map(const at::Tensor& map);

}  // namespace elliptical::nn
