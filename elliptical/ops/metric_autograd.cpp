// SPDX-License-Identifier: MIT
#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <torch/csrc/autograd/custom_function.h>

#include "elliptical/ops/metric_impl.h"

namespace elliptical::ops {
namespace {

class MeanChangeNode : public torch::autograd::Function<MeanChangeNode> {
 public:
  static at::Tensor forward(torch::autograd::AutogradContext* ctx,
                            const at::Tensor& v,
                            const at::Tensor& v_prev,
                            double delta) {
    const at::AutoDispatchBelowADInplaceOrView guard;
    ctx->save_for_backward({v, v_prev});
    ctx->saved_data["delta"] = delta;
    return call_metric_difference({.v = v,
                                   .v_prev = v_prev,
                                   .lengths = {},
                                   .prefix = false,
                                   .scaling = MetricScaling::kNone,
                                   .delta = delta});
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* ctx,
                                                 const torch::autograd::variable_list& above) {
    const torch::autograd::variable_list saved = ctx->get_saved_variables();
    const at::Tensor &v = saved[0], &v_prev = saved[1];
    const double count = static_cast<double>(v.size(2)) * ctx->saved_data["delta"].toDouble();
    const at::Tensor dv = (v - v_prev).sign_().mul_(above[0] / count);
    return {dv, ctx->needs_input_grad(1) ? -dv : at::Tensor(), {}};
  }
};

}  // namespace

at::Tensor mean_change(const at::Tensor& v, const at::Tensor& v_prev, double delta) {
  return MeanChangeNode::apply(v, v_prev, delta);
}

}  // namespace elliptical::ops
