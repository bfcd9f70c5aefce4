// SPDX-License-Identifier: MIT
//
// Adam over the parameters of a model, with its moments under the parameters' names; which of them
// decay is a rule of the options.
#pragma once

#include <vector>

#include "elliptical/run/run_options.h"
#include "elliptical/store/tensor_files.h"

namespace elliptical::run {

class Adam {
 public:
  /// `parameters` that take part in training; moments start at zero.
  Adam(const torch::nn::Module& model, const OptimizerOptions& options);

  void clear_gradients();
  /// The norm of all gradients as the last backward left them.
  double gradient_norm() const;
  /// Update number `step`, from 0. `norm` is what gradient_norm gave.
  void update(double learning_rate, double norm, int64_t step);

  /// "exp_avg.NAME" and "exp_avg_sq.NAME"; shares memory with the optimizer.
  store::NamedTensors state() const;
  const store::NamedTensors& parameters() const { return parameters_; }

 private:
  OptimizerOptions options_;
  store::NamedTensors parameters_;
  std::vector<at::Tensor> exp_avg_, exp_avg_sq_;
};

}  // namespace elliptical::run
