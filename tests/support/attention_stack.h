// SPDX-License-Identifier: MIT
//
// A few attention layers on top of each other, the smallest thing in which every variant does what
// it does: x + attention(x), layer by layer.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "elliptical/nn/attention/attention.h"
#include "tests/support/attention_variants.h"

namespace elliptical::support {

struct AttentionStack {
  /// dim and num_heads of `shape`, three layers, weights N(0, 0.3^2) from a fixed seed.
  AttentionStack(const ChosenOptions& options, nn::AttentionShape shape);
  /// Of a variant that may be of a test's own table, with more options.
  AttentionStack(const AttentionVariant& variant,
                 nn::AttentionShape shape,
                 const std::vector<std::string>& more = {});

  at::Tensor forward(at::Tensor x, nn::Pass& pass) const;
  at::Tensor forward(const at::Tensor& x) const;
  void to(at::ScalarType type) const;
  std::vector<at::Tensor> parameters() const;

  bool is_causal;
  std::vector<std::shared_ptr<nn::Attention>> layers;

 private:
  using Make = std::function<std::shared_ptr<nn::Attention>(const nn::AttentionShape&)>;
  AttentionStack(const Make& make, nn::AttentionShape shape);
};

/// Numbers of order 1 without structure, the same at every call.
at::Tensor wave(at::IntArrayRef sizes, double frequency = 0.7);

}  // namespace elliptical::support
