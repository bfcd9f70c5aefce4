// SPDX-License-Identifier: MIT
#include "elliptical/run/optimizer.h"

#include <torch/torch.h>

#include "elliptical/ops/adam.h"

namespace elliptical::run {

Adam::Adam(const torch::nn::Module& model, const OptimizerOptions& options) : options_(options) {
  for (const auto& [name, tensor] : store::named_tensors(model)) {
    if (!tensor.requires_grad()) continue;
    parameters_.emplace_back(name, tensor);
    exp_avg_.push_back(at::zeros_like(tensor));
    exp_avg_sq_.push_back(at::zeros_like(tensor));
  }
}

void Adam::clear_gradients() {
  // Undefined rather than zero: the backward then hands over its buffers instead of adding to ours.
  for (auto& [name, parameter] : parameters_) parameter.mutable_grad().reset();
}

double Adam::gradient_norm() const {
  std::vector<at::Tensor> gradients;
  for (const auto& [name, parameter] : parameters_) {
    if (parameter.grad().defined()) gradients.push_back(parameter.grad());
  }
  return ops::gradient_norm(gradients);
}

void Adam::update(double learning_rate, double norm, int64_t step) {
  struct Group {
    std::vector<at::Tensor> parameters, gradients, exp_avg, exp_avg_sq;
  };
  Group decaying, staying;
  for (size_t i = 0; i < parameters_.size(); ++i) {
    const auto& [name, parameter] = parameters_[i];
    if (!parameter.grad().defined()) continue;
    Group& group = decays(options_.decay_rule, name, parameter.dim()) ? decaying : staying;
    group.parameters.push_back(parameter);
    group.gradients.push_back(parameter.grad().contiguous());
    group.exp_avg.push_back(exp_avg_[i]);
    group.exp_avg_sq.push_back(exp_avg_sq_[i]);
  }
  const bool clip = options_.clip_norm > 0 && norm > options_.clip_norm;
  for (const auto& [group, weight_decay] :
       {std::pair(&decaying, options_.weight_decay), std::pair(&staying, 0.0)}) {
    ops::adam_step(group->parameters, group->gradients, group->exp_avg, group->exp_avg_sq,
                   {.learning_rate = learning_rate,
                    .beta1 = options_.beta1,
                    .beta2 = options_.beta2,
                    .eps = options_.eps,
                    .weight_decay = weight_decay,
                    .gradient_scale = clip ? options_.clip_norm / norm : 1.0,
                    .step = step + 1});
  }
}

store::NamedTensors Adam::state() const {
  store::NamedTensors result;
  for (size_t i = 0; i < parameters_.size(); ++i) {
    result.emplace_back("exp_avg." + parameters_[i].first, exp_avg_[i]);
    result.emplace_back("exp_avg_sq." + parameters_[i].first, exp_avg_sq_[i]);
  }
  return result;
}

}  // namespace elliptical::run
