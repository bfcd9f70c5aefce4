// SPDX-License-Identifier: MIT
#include "elliptical/ops/adam.h"

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <c10/util/Exception.h>

#include <cmath>

#include "elliptical/ops/shape_text_impl.h"

namespace elliptical::ops {
namespace {

using Tensors = std::vector<at::Tensor>;

void check_tensor(const char* op, const char* list, size_t i, const at::Tensor& tensor) {
  TORCH_CHECK_VALUE(tensor.defined(), op, ": ", list, "[", i, "] must be a tensor, got none");
  TORCH_CHECK_TYPE(tensor.scalar_type() == at::kFloat, op, ": ", list, "[", i,
                   "] must have dtype Float, got ", tensor.scalar_type());
  TORCH_CHECK_VALUE(tensor.device().is_cpu(), op, ": ", list, "[", i, "] must be on cpu, got ",
                    tensor.device());
  TORCH_CHECK_VALUE(tensor.is_contiguous(), op, ": ", list, "[", i,
                    "] must be contiguous, got strides ", tensor.strides());
}

void check_list(const char* list, const Tensors& tensors, const Tensors& parameters) {
  TORCH_CHECK_VALUE(tensors.size() == parameters.size(), "adam_step: ", list,
                    " must be as many as parameters = ", parameters.size(), ", got ",
                    tensors.size());
  for (size_t i = 0; i < tensors.size(); ++i) {
    check_tensor("adam_step", list, i, tensors[i]);
    TORCH_CHECK_VALUE(tensors[i].sizes() == parameters[i].sizes(), "adam_step: ", list, "[", i,
                      "] must have its parameter's shape ", shape_text(parameters[i]), ", got ",
                      shape_text(tensors[i]));
  }
}

}  // namespace

void adam_step(const Tensors& parameters,
               const Tensors& gradients,
               const Tensors& exp_avg,
               const Tensors& exp_avg_sq,
               const AdamStep& options) {
  check_list("parameters", parameters, parameters);
  check_list("gradients", gradients, parameters);
  check_list("exp_avg", exp_avg, parameters);
  check_list("exp_avg_sq", exp_avg_sq, parameters);
  TORCH_CHECK_VALUE(options.step >= 1, "adam_step: step must be >= 1, got ", options.step);
  const at::NoGradGuard no_grad;
  const auto step = static_cast<double>(options.step);
  const double correction1 = 1.0 - std::pow(options.beta1, step);
  const double correction2 = std::sqrt(1.0 - std::pow(options.beta2, step));
  for (size_t i = 0; i < parameters.size(); ++i) {
    at::Tensor parameter = parameters[i], first = exp_avg[i], second = exp_avg_sq[i];
    const at::Tensor gradient = gradients[i] * options.gradient_scale;
    parameter.mul_(1.0 - options.learning_rate * options.weight_decay);
    first.lerp_(gradient, 1.0 - options.beta1);
    second.mul_(options.beta2).addcmul_(gradient, gradient, 1.0 - options.beta2);
    const at::Tensor denominator = second.sqrt().div_(correction2).add_(options.eps);
    parameter.addcdiv_(first, denominator, -options.learning_rate / correction1);
  }
}

double gradient_norm(const Tensors& gradients) {
  double sum = 0.0;
  for (size_t i = 0; i < gradients.size(); ++i) {
    check_tensor("gradient_norm", "gradients", i, gradients[i]);
    sum += gradients[i].detach().to(at::kDouble).square().sum().item<double>();
  }
  return std::sqrt(sum);
}

}  // namespace elliptical::ops
