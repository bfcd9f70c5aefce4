// SPDX-License-Identifier: MIT
#include "elliptical/nn/attention/density_mixer.h"

#include <torch/torch.h>

namespace elliptical::nn {

void DensityOptions::visit(FieldList& fields) {
  fields.add("kernel_scale", kernel_scale, "s of the kernel exp(-s d^2); 1 / sqrt(D) when absent",
             above(0));
  visit_distance(fields);
}

DensityMixer::DensityMixer(const DensityOptions& options, const AttentionShape& shape, bool leaks)
    : regression_{.kernel_scale = options.kernel_scale.value_or(default_kernel_scale(shape)),
                  .dropout = shape.dropout},
      leaks_(leaks) {
  if (options.is_elliptical) {
    source_.emplace(options, shape, 2.0 * regression_.kernel_scale, *this);
  }
}

at::Tensor DensityMixer::mix(const Heads& heads,
                             const Pass& pass,
                             std::unique_ptr<MixerState>* state) {
  return kernel_regression(heads, metric(heads, pass, state), weights(heads, pass), regression_,
                           pass);
}

std::optional<KeyWeights> DensityMixer::weights(const Heads&, const Pass&) const {
  return std::nullopt;
}

at::Tensor DensityMixer::real_keys(const Heads& heads, const Pass& pass) {
  if (!pass.key_lengths) return {};
  return (at::arange(heads.k.size(2)) < pass.key_lengths->unsqueeze(-1)).unsqueeze(1);
}

std::optional<at::Tensor> DensityMixer::metric(const Heads& heads,
                                               const Pass& pass,
                                               std::unique_ptr<MixerState>* state) const {
  return source_ ? source_->metric(heads, pass, state) : std::nullopt;
}

std::optional<std::string> DensityMixer::why_no_streaming() const {
  return source_ ? source_->why_no_streaming() : std::nullopt;
}

std::map<std::string, LabelValue> DensityMixer::labels() const {
  std::map<std::string, LabelValue> labels{{"leaks_future", false}};
  if (source_) labels = source_->labels();
  if (leaks_) labels["leaks_future"] = true;
  labels["kernel_scale"] = regression_.kernel_scale;
  return labels;
}

}  // namespace elliptical::nn
