// SPDX-License-Identifier: MIT
//
// Whether torch differentiates or batches in a way that our kernels have no rule for. Their
// derivative is a reverse-mode one, written as an autograd function in C++: torch.func refuses
// those, and a leaf kernel under forward mode would give a tangent of 0 without a word. Fused paths
// ask here first.
#pragma once

#include <c10/core/impl/LocalDispatchKeySet.h>
#include <torch/csrc/autograd/forward_grad.h>

namespace elliptical::ops {

/// True inside torch.func.grad, vmap and their like.
inline bool functional_transform_runs() {
  using c10::impl::tls_is_dispatch_key_included;
  return tls_is_dispatch_key_included(c10::DispatchKey::FuncTorchDynamicLayerFrontMode) ||
         tls_is_dispatch_key_included(c10::DispatchKey::FuncTorchDynamicLayerBackMode);
}

/// True inside torch.autograd.forward_ad.dual_level, torch.func.jvp and jacfwd, where any tensor
/// may carry a tangent. There is only one such level at a time, number 0.
inline bool forward_mode_runs() {
  return torch::autograd::ForwardADLevel::try_get_by_idx(0) != nullptr;
}

/// Neither of them.
inline bool kernels_are_differentiable() {
  return !functional_transform_runs() && !forward_mode_runs();
}

}  // namespace elliptical::ops
