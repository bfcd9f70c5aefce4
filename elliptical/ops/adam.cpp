// SPDX-License-Identifier: MIT
#include "elliptical/ops/adam.h"

#include <c10/util/Exception.h>

#include <cmath>

#include "elliptical/kernels/adam.h"
#include "elliptical/ops/parallel_impl.h"
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
  TORCH_CHECK_NOT_IMPLEMENTED(!tensor._fw_grad(0).defined(), op, ": ", list, "[", i,
                              "] must have no forward-mode tangent: a step in place has none");
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
  const auto step = static_cast<double>(options.step);
  const double correction1 = 1.0 - std::pow(options.beta1, step);
  const double correction2 = 1.0 - std::pow(options.beta2, step);
  const kernels::AdamFactors factors{
      .beta1 = static_cast<float>(options.beta1),
      .beta2 = static_cast<float>(options.beta2),
      .eps = static_cast<float>(options.eps),
      .gradient_scale = static_cast<float>(options.gradient_scale),
      .keep = static_cast<float>(1.0 - options.learning_rate * options.weight_decay),
      .step_size = static_cast<float>(options.learning_rate / correction1),
      .second_factor = static_cast<float>(1.0 / std::sqrt(correction2))};
  std::vector<kernels::AdamArrays> arrays(parameters.size());
  for (size_t i = 0; i < parameters.size(); ++i) {
    arrays[i] = {.size = parameters[i].numel(),
                 .parameter = parameters[i].mutable_data_ptr<float>(),
                 .gradient = gradients[i].const_data_ptr<float>(),
                 .first = exp_avg[i].mutable_data_ptr<float>(),
                 .second = exp_avg_sq[i].mutable_data_ptr<float>()};
    // Whoever saved a parameter for a later backward must notice.
    parameters[i].unsafeGetTensorImpl()->bump_version();
  }
  kernels::adam(arrays, factors, torch_parallel_for);
}

double gradient_norm(const Tensors& gradients) {
  std::vector<kernels::FloatArray> arrays(gradients.size());
  for (size_t i = 0; i < gradients.size(); ++i) {
    check_tensor("gradient_norm", "gradients", i, gradients[i]);
    arrays[i] = {gradients[i].numel(), gradients[i].const_data_ptr<float>()};
  }
  return std::sqrt(kernels::sum_of_squares(arrays, torch_parallel_for));
}

}  // namespace elliptical::ops
