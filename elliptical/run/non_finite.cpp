// SPDX-License-Identifier: MIT
#include "elliptical/run/non_finite.h"

#include <ATen/record_function.h>
#include <torch/torch.h>

#include <memory>
#include <unordered_map>

namespace elliptical::run {
namespace {

bool is_finite(const at::Tensor& tensor) {
  return !tensor.is_floating_point() || at::isfinite(tensor).all().item<bool>();
}

struct Watch {
  std::unordered_map<const void*, std::string> names;  ///< by where the parameter's data lies
  std::string found;
  bool looking = false;  ///< our own checks are operations too
};

// Callbacks are plain functions, so what they work on has to be reachable from anywhere.
thread_local Watch* watch = nullptr;

struct LayerContext : at::ObserverContext {
  std::string parameter;
};

std::string parameter_among(c10::ArrayRef<const c10::IValue> inputs) {
  for (const c10::IValue& input : inputs) {
    if (!input.isTensor()) continue;
    const at::Tensor& tensor = input.toTensor();
    if (!tensor.defined() || !tensor.has_storage()) continue;
    const auto found = watch->names.find(tensor.storage().data());
    if (found != watch->names.end()) return found->second;
  }
  return "";
}

std::unique_ptr<at::ObserverContext> before_operation(const at::RecordFunction& operation) {
  if (watch->looking || !watch->found.empty()) return nullptr;
  const std::string parameter = parameter_among(operation.inputs());
  if (parameter.empty()) return nullptr;
  auto context = std::make_unique<LayerContext>();
  context->parameter = parameter;
  return context;
}

void after_operation(const at::RecordFunction& operation, at::ObserverContext* context) {
  if (!context || !watch->found.empty()) return;
  watch->looking = true;
  for (const c10::IValue& output : operation.outputs()) {
    if (!output.isTensor() || !output.toTensor().defined() || is_finite(output.toTensor()))
      continue;
    const std::string& parameter = static_cast<LayerContext*>(context)->parameter;
    const size_t dot = parameter.rfind('.');
    watch->found = parameter.substr(0, dot) + " (" + operation.name() + ")";
    break;
  }
  watch->looking = false;
}

}  // namespace

std::string first_non_finite_layer(const store::NamedTensors& parameters,
                                   const std::function<void()>& forward) {
  const at::NoGradGuard no_grad;
  Watch own;
  for (const auto& [name, parameter] : parameters) {
    if (!is_finite(parameter)) return "the weights of " + name;
    if (parameter.has_storage()) own.names.emplace(parameter.storage().data(), name);
  }
  watch = &own;
  const auto handle =
      at::addThreadLocalCallback(at::RecordFunctionCallback(before_operation, after_operation)
                                     .needsInputs(true)
                                     .needsOutputs(true));
  try {
    forward();
  } catch (...) {
    at::removeCallback(handle);
    throw;
  }
  at::removeCallback(handle);
  return own.found.empty() ? "none of the layers: what follows them" : own.found;
}

std::string non_finite_tensor(const store::NamedTensors& tensors) {
  const at::NoGradGuard no_grad;
  for (const auto& [name, tensor] : tensors) {
    if (!is_finite(tensor)) return name;
  }
  return "";
}

std::string non_finite_gradient(const store::NamedTensors& parameters) {
  for (auto item = parameters.rbegin(); item != parameters.rend(); ++item) {
    const at::Tensor gradient = item->second.grad();
    if (gradient.defined() && !is_finite(gradient)) return item->first;
  }
  return "";
}

}  // namespace elliptical::run
