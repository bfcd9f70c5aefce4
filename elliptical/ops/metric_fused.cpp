// SPDX-License-Identifier: MIT
//
// The kernel of the paper's estimator as the dispatcher op `_metric_difference`.
#include <ATen/Functions.h>
#include <ATen/core/dispatch/Dispatcher.h>

#include "elliptical/kernels/metric.h"
#include "elliptical/ops/masks_impl.h"
#include "elliptical/ops/metric_impl.h"
#include "elliptical/ops/parallel_impl.h"
#include "elliptical/ops/tensor_memory_impl.h"

namespace elliptical::ops {
namespace {

at::Tensor empty_metric(const at::Tensor& v, bool prefix) {
  return at::empty_symint(
      {v.sym_size(0), v.sym_size(1), prefix ? v.sym_size(2) : c10::SymInt(1), v.sym_size(3)},
      v.options());
}

}  // namespace

at::Tensor metric_difference_cpu(const at::Tensor& v,
                                 const at::Tensor& v_prev,
                                 const OptionalTensor& lengths,
                                 bool prefix,
                                 std::string_view scaling,
                                 double delta) {
  if (lengths) check_lengths(*lengths, v.size(2), "metric: lengths", "N");
  const at::Tensor own_lengths = lengths ? lengths->contiguous() : at::Tensor();
  const at::Tensor metric = empty_metric(v, prefix);
  kernels::metric_difference({.B = v.size(0),
                              .H = v.size(1),
                              .N = v.size(2),
                              .D = v.size(3),
                              .v = read_view(v),
                              .v_prev = read_view(v_prev),
                              .lengths = lengths ? own_lengths.const_data_ptr<int64_t>() : nullptr,
                              .prefix = prefix,
                              .scaling = metric_scaling(scaling),
                              .delta = delta},
                             metric.mutable_data_ptr<float>(), torch_parallel_for);
  return metric;
}

at::Tensor metric_difference_meta(const at::Tensor& v,
                                  const at::Tensor&,
                                  const OptionalTensor&,
                                  bool prefix,
                                  std::string_view,
                                  double) {
  return empty_metric(v, prefix);
}

at::Tensor call_metric_difference(const MetricDifference& args) {
  static const auto op = c10::Dispatcher::singleton()
                             .findSchemaOrThrow("elliptical::_metric_difference", "")
                             .typed<MetricDifferenceSignature>();
  return op.call(args.v, args.v_prev, args.lengths, args.prefix, to_string(args.scaling),
                 args.delta);
}

}  // namespace elliptical::ops
