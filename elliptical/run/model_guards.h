// SPDX-License-Identifier: MIT
//
// A model in another state for a while: back as it was, also when something throws.
#pragma once

#include <torch/nn/module.h>

#include <vector>

#include "elliptical/ops/frozen_weights.h"

namespace elliptical::run {

/// Evaluation mode, in which nothing is dropped and weights do not change.
class EvaluationMode {
 public:
  explicit EvaluationMode(torch::nn::Module& model) : model_(model), before_(model.is_training()) {
    model_.eval();
  }
  ~EvaluationMode() { model_.train(before_); }
  EvaluationMode(const EvaluationMode&) = delete;
  EvaluationMode& operator=(const EvaluationMode&) = delete;

 private:
  torch::nn::Module& model_;
  bool before_;
  ops::FrozenWeights frozen_;
};

/// Parameters that get no gradient, so that none is computed for them on the way to the input.
class FrozenParameters {
 public:
  explicit FrozenParameters(torch::nn::Module& model) {
    for (at::Tensor& parameter : model.parameters()) {
      if (!parameter.requires_grad()) continue;
      parameter.set_requires_grad(false);
      frozen_.push_back(parameter);
    }
  }
  ~FrozenParameters() {
    for (at::Tensor& parameter : frozen_) parameter.set_requires_grad(true);
  }
  FrozenParameters(const FrozenParameters&) = delete;
  FrozenParameters& operator=(const FrozenParameters&) = delete;

 private:
  std::vector<at::Tensor> frozen_;
};

}  // namespace elliptical::run
