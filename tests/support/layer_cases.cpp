// SPDX-License-Identifier: MIT
#include "tests/support/layer_cases.h"
#include "tests/support/one_thread.h"

#include <ATen/Parallel.h>
#include <torch/torch.h>

namespace elliptical::support {

at::Tensor direction(const at::Tensor& like) {
  return torch::arange(like.numel(), torch::kDouble)
      .mul(1.7)
      .sin()
      .view(like.sizes())
      .to(like.scalar_type());
}

Tensors values_and_gradients(const LayerFunction& function, const Tensors& inputs) {
  Tensors own;
  for (const at::Tensor& input : inputs) {
    own.push_back(input.detach().clone().requires_grad_(input.is_floating_point()));
  }
  const at::Tensor value = function(own);
  Tensors results{value.detach()};
  const at::Tensor loss = (value * direction(value)).sum();
  const Tensors gradients =
      torch::autograd::grad({loss}, own, {}, {}, false, /*allow_unused=*/true);
  results.insert(results.end(), gradients.begin(), gradients.end());
  return results;
}

::testing::AssertionResult layers_match(const LayerFunction& fused,
                                        const LayerFunction& composite,
                                        const Tensors& inputs) {
  Tensors wide;
  for (const at::Tensor& input : inputs) wide.push_back(input.to(torch::kDouble));
  const Tensors got = values_and_gradients(fused, inputs);
  const Tensors expected = values_and_gradients(composite, wide);
  for (size_t i = 0; i < got.size(); ++i) {
    const std::string what = i == 0 ? "value" : "gradient " + std::to_string(i - 1);
    if (got[i].defined() != expected[i].defined()) {
      return ::testing::AssertionFailure() << what << " is missing on one side";
    }
    if (!got[i].defined() || got[i].numel() == 0) continue;
    if (got[i].sizes() != expected[i].sizes()) {
      return ::testing::AssertionFailure()
             << what << " is " << got[i].sizes() << ", must be " << expected[i].sizes();
    }
    const double bound = 2e-5 * std::max(1.0, expected[i].abs().max().item<double>());
    const double error = (got[i].to(torch::kDouble) - expected[i]).abs().max().item<double>();
    if (!(error <= bound)) {
      return ::testing::AssertionFailure() << what << " is off by " << error << " > " << bound;
    }
  }
  return ::testing::AssertionSuccess();
}

void expect_threads_change_no_bit(const LayerFunction& fused,
                                  const Tensors& inputs,
                                  const std::string& name) {
  const ThreadCount restore;
  at::set_num_threads(1);
  const Tensors expected = values_and_gradients(fused, inputs);
  for (const int threads : {2, 3, 8}) {
    at::set_num_threads(threads);
    const Tensors got = values_and_gradients(fused, inputs);
    for (size_t i = 0; i < got.size(); ++i) {
      if (!got[i].defined()) continue;
      EXPECT_TRUE(got[i].equal(expected[i])) << name << ", " << threads << ", tensor " << i;
    }
  }
}

}  // namespace elliptical::support
