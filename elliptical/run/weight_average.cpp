// SPDX-License-Identifier: MIT
#include "elliptical/run/weight_average.h"

#include <torch/torch.h>

namespace elliptical::run {

WeightAverage::WeightAverage(const torch::nn::Module& model, double decay) : decay_(decay) {
  if (!is_kept()) return;
  weights_ = store::named_tensors(model);
  for (const auto& [name, tensor] : weights_) {
    average_.emplace_back(name, tensor.detach().clone());
  }
}

void WeightAverage::restart() {
  for (size_t i = 0; i < average_.size(); ++i) {
    average_[i].second.copy_(weights_[i].second.detach());
  }
}

void WeightAverage::update() {
  for (size_t i = 0; i < average_.size(); ++i) {
    at::Tensor& average = average_[i].second;
    const at::Tensor weights = weights_[i].second.detach();
    if (average.is_floating_point()) {
      average.lerp_(weights, 1.0 - decay_);
    } else {
      average.copy_(weights);
    }
  }
}

void WeightAverage::exchange() {
  for (size_t i = 0; i < average_.size(); ++i) {
    at::Tensor weights = weights_[i].second.detach();  // shares memory
    const at::Tensor kept = weights.clone();
    weights.copy_(average_[i].second);
    average_[i].second.copy_(kept);
  }
}

}  // namespace elliptical::run
