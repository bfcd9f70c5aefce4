// SPDX-License-Identifier: MIT
#include "tests/support/gradcheck.h"

#include <torch/torch.h>

namespace elliptical::support {
namespace {

at::Tensor combine(const std::vector<at::Tensor>& outputs) {
  at::Tensor sum = torch::zeros({}, torch::kDouble);
  int64_t position = 1;
  for (const at::Tensor& output : outputs) {
    // Weights without structure: no gradient that a symmetry could hide.
    const at::Tensor weight =
        torch::arange(position, position + output.numel(), torch::kDouble).mul(0.7).sin();
    sum = sum + (weight.view(output.sizes()) * output).sum();
    position += output.numel();
  }
  return sum;
}

}  // namespace

::testing::AssertionResult gradients_match(const TensorFunction& function,
                                           std::vector<at::Tensor> inputs,
                                           double step,
                                           double tolerance) {
  for (at::Tensor& input : inputs) input = input.detach().clone().set_requires_grad(true);
  const std::vector<at::Tensor> analytic =
      torch::autograd::grad({combine(function(inputs))}, inputs, {}, {}, false, true);

  const torch::NoGradGuard no_grad;
  for (size_t index = 0; index < inputs.size(); ++index) {
    const at::Tensor input =
        inputs[index].detach();  // shares memory: steps change the input itself
    at::Tensor numeric = torch::zeros_like(input);
    double* value = input.data_ptr<double>();
    for (int64_t i = 0; i < input.numel(); ++i) {
      const double kept = value[i];
      value[i] = kept + step;
      const double above = combine(function(inputs)).item<double>();
      value[i] = kept - step;
      const double below = combine(function(inputs)).item<double>();
      value[i] = kept;
      numeric.data_ptr<double>()[i] = (above - below) / (2 * step);
    }
    const at::Tensor given = analytic[index].defined() ? analytic[index] : torch::zeros_like(input);
    if (input.numel() == 0) continue;
    const double error = (given - numeric).abs().max().item<double>();
    if (!(error <= tolerance)) {
      return ::testing::AssertionFailure()
             << "gradient of input " << index << " is off by " << error << "\nanalytic\n"
             << given << "\nnumeric\n"
             << numeric;
    }
  }
  return ::testing::AssertionSuccess();
}

}  // namespace elliptical::support
