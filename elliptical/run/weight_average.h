// SPDX-License-Identifier: MIT
//
// An exponential moving average of everything a model's state is made of, parameters and buffers:
//
//   average <- decay average + (1 - decay) weights        after each update
//
// Numbers that are counted rather than measured (integers, flags) are copied. It starts at the
// initial weights, without bias correction, as DeiT's does.
#pragma once

#include "elliptical/store/tensor_files.h"

namespace elliptical::run {

class WeightAverage {
 public:
  /// No average is kept where `decay` is 0. `model` must live as long as this.
  WeightAverage(const torch::nn::Module& model, double decay);

  /// Starts again at the weights as they are.
  void restart();
  void update();

  /// Exchanges the average with the weights of the model.
  void exchange();

  bool is_kept() const { return decay_ > 0; }
  /// Under the names that the model gives them; shares memory with the average.
  const store::NamedTensors& state() const { return average_; }

 private:
  double decay_;
  store::NamedTensors weights_, average_;
};

/// The model has the average for its weights while this lives.
class AverageInUse {
 public:
  explicit AverageInUse(WeightAverage& average) : average_(average) { average_.exchange(); }
  ~AverageInUse() { average_.exchange(); }
  AverageInUse(const AverageInUse&) = delete;
  AverageInUse& operator=(const AverageInUse&) = delete;

 private:
  WeightAverage& average_;
};

}  // namespace elliptical::run
