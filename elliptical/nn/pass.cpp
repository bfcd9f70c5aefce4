// SPDX-License-Identifier: MIT
#include "elliptical/nn/pass.h"

#include <ATen/ATen.h>

#include "elliptical/base/errors.h"

namespace elliptical::nn {

std::string_view to_string(Traced what) {
  switch (what) {
    case Traced::kQueries:
      return "queries";
    case Traced::kKeys:
      return "keys";
    case Traced::kValues:
      return "values";
    case Traced::kMetric:
      return "metric";
    case Traced::kMap:
      return "attention";
    case Traced::kBranch:
      return "branch";
    case Traced::kProjectedBranch:
      return "projected_branch";
    case Traced::kResidual:
      return "residual";
  }
  return "";
}

void Trace::add(int64_t layer, Traced what, const at::Tensor& tensor) {
  const at::Tensor plain = tensor.detach();
  if (receive_) {
    receive_(layer, what, plain);
  } else {
    tensors["layers." + std::to_string(layer) + "." + std::string(to_string(what))] = plain;
  }
}

}  // namespace elliptical::nn
