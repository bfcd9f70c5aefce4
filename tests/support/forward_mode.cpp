// SPDX-License-Identifier: MIT
#include "tests/support/forward_mode.h"

#include <torch/csrc/autograd/forward_grad.h>
#include <torch/torch.h>

namespace elliptical::support {
namespace {

using torch::autograd::ForwardADLevel;

class DualLevel {
 public:
  DualLevel() : level_(ForwardADLevel::get_next_idx()) {}
  ~DualLevel() { ForwardADLevel::release_idx(level_); }
  DualLevel(const DualLevel&) = delete;
  DualLevel& operator=(const DualLevel&) = delete;
  int64_t number() const { return static_cast<int64_t>(level_); }

 private:
  uint64_t level_;
};

}  // namespace

DualValue forward_derivative(
    const std::function<at::Tensor(const std::vector<at::Tensor>&)>& function,
    const std::vector<at::Tensor>& inputs,
    const std::vector<at::Tensor>& tangents) {
  const DualLevel level;
  std::vector<at::Tensor> duals;
  for (size_t i = 0; i < inputs.size(); ++i) {
    duals.push_back(tangents[i].defined() ? at::_make_dual(inputs[i], tangents[i], level.number())
                                          : inputs[i]);
  }
  const auto [primal, tangent] = at::_unpack_dual(function(duals), level.number());
  return {primal.clone(), tangent.defined() ? tangent.clone() : tangent};
}

}  // namespace elliptical::support
