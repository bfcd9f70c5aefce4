// SPDX-License-Identifier: MIT
#include "elliptical/nn/attention/fourier.h"

#include <torch/torch.h>

#include "elliptical/base/errors.h"
#include "elliptical/nn/attention/attend.h"
#include "elliptical/ops/fourier_attention.h"

namespace elliptical::nn {
namespace {

class FourierMixer : public HeadMixer {
 public:
  FourierMixer(const FourierAttentionOptions& options, const AttentionShape& shape)
      : epsilon_(options.epsilon), dropout_(shape.dropout) {
    const int64_t size = options.radius_per_coordinate ? shape.head_dim() : 1;
    radius_ = register_parameter("radius", torch::full({size}, options.radius));
    if (!options.is_elliptical) return;
    source_ = std::make_unique<MetricSource>(options, shape, std::nullopt, *this);
    if (!source_->has_one_row()) {
      throw ConfigError(
          "fourier attention: the metric must be one row for a whole sequence, got metric.scope = "
          "\"prefix\" (keys are stretched by it before queries see them: use an estimator that "
          "reads no tokens, a model that is not causal, or elliptical attention)");
    }
  }

  at::Tensor mix(const Heads& heads,
                 const Pass& pass,
                 std::unique_ptr<MixerState>* state) override {
    std::optional<at::Tensor> metric;
    if (source_) metric = source_->metric(heads, pass, state);
    TORCH_CHECK_VALUE(!metric || metric->size(2) == 1,
                      "fourier attention: the metric must have one row for all tokens, got ",
                      metric ? metric->size(2) : 1,
                      " (evaluate with the scope it was trained with)");
    const at::Tensor stretch = metric ? metric->sqrt() * radius_ : radius_;
    const at::Tensor a = heads.q * stretch, b = heads.k * stretch;
    ops::FourierOptions call{
        .is_causal = pass.is_causal, .epsilon = epsilon_, .key_lengths = pass.key_lengths};
    leave_trace(heads, metric, [&] { return ops::fourier_map(a, b, call); }, pass);
    if (pass.training && dropout_ > 0.0) {
      call.dropout_p = dropout_;
      call.dropout_seed = pass.seed("attention dropout");
    }
    return ops::fourier_attention(a, b, heads.v, call);
  }

  std::optional<std::string> why_no_streaming() const override {
    return source_ ? source_->why_no_streaming() : std::nullopt;
  }
  std::map<std::string, LabelValue> labels() const override {
    if (source_) return source_->labels();
    return {{"leaks_future", false}};
  }

 private:
  double epsilon_, dropout_;
  at::Tensor radius_;  ///< R, (1) or (D)
  std::unique_ptr<MetricSource> source_;
};

}  // namespace

void FourierAttentionOptions::visit(FieldList& fields) {
  fields.add("radius", radius, "where the bandwidth R starts", above(0));
  fields.add("radius_per_coordinate", radius_per_coordinate,
             "a bandwidth for each coordinate instead of one for the layer");
  fields.add("epsilon", epsilon, "added to the sum of weights", at_least(0));
  visit_distance(fields);
}

std::unique_ptr<Options> FourierAttentionOptions::clone() const {
  return std::make_unique<FourierAttentionOptions>(*this);
}

std::shared_ptr<HeadMixer> make_fourier_mixer(const FourierAttentionOptions& options,
                                              const AttentionShape& shape) {
  return std::make_shared<FourierMixer>(options, shape);
}

std::shared_ptr<Attention> make_fourier(const Options& options, const AttentionShape& shape) {
  return std::make_shared<MultiHead>(
      shape, make_fourier_mixer(dynamic_cast<const FourierAttentionOptions&>(options), shape));
}

}  // namespace elliptical::nn
