// SPDX-License-Identifier: MIT
#include "tests/support/golden_heads.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

namespace elliptical::support {
namespace {

at::Tensor rows(std::vector<double> numbers) {
  return torch::tensor(numbers, torch::kDouble).view({1, 1, 4, 2});
}

}  // namespace

nn::HeadMixer::Heads golden_heads() {
  const at::Tensor v = rows({1, 0, 0, 1, 1, 1, -1, 0.5});
  return {rows({0.1, 0.2, -0.3, 0.4, 0.5, -0.6, 0.7, 0.8}),
          rows({0.2, -0.1, 0.4, 0.3, -0.5, 0.6, 0.0, 0.9}), v, v};
}

at::Tensor golden_previous_v() { return rows({0.5, 0.25, 0, 0.5, 1.5, 1, -1, 1}); }

void expect_golden(nn::HeadMixer& mixer, bool is_causal, std::vector<double> expected) {
  const nn::HeadMixer::Heads heads = golden_heads();
  for (const auto type : {torch::kDouble, torch::kFloat}) {
    nn::Pass pass;
    pass.is_causal = is_causal;
    pass.previous_q = heads.q.to(type);
    pass.previous_v = golden_previous_v().to(type);
    const at::Tensor out =
        mixer.mix({heads.q.to(type), heads.k.to(type), heads.v.to(type), heads.v_new.to(type)},
                  pass, nullptr);
    // The goldens have 8 decimals.
    const double tolerance = type == torch::kDouble ? 1e-7 : 1e-5;
    EXPECT_LE((out.to(torch::kDouble) - rows(expected)).abs().max().item<double>(), tolerance)
        << out;
  }
}

}  // namespace elliptical::support
