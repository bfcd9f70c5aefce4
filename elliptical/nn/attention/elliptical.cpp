// SPDX-License-Identifier: MIT
#include "elliptical/nn/attention/elliptical.h"

#include <torch/torch.h>

#include "elliptical/nn/attention/attend.h"

namespace elliptical::nn {
namespace {

/// As released, the first layer, which has no metric, keeps its 1 / sqrt(D).
AttendOptions attend_options(const EllipticalOptions& options, const AttentionShape& shape) {
  AttendOptions attend{.dropout = shape.dropout};
  if (shape.layer > 0 && !options.scale_logits) attend.scale = 1.0;
  return attend;
}

class EllipticalMixer : public HeadMixer {
 public:
  EllipticalMixer(const EllipticalOptions& options, const AttentionShape& shape)
      : attend_(attend_options(options, shape)),
        source_(options, shape, attend_.scale, *this),
        scale_logits_(options.scale_logits) {}

  at::Tensor mix(const Heads& heads,
                 const Pass& pass,
                 std::unique_ptr<MixerState>* state) override {
    return attend(heads, source_.metric(heads, pass, state), attend_, pass);
  }

  std::optional<std::string> why_no_streaming() const override {
    return source_.why_no_streaming();
  }

  std::map<std::string, LabelValue> labels() const override {
    std::map<std::string, LabelValue> labels = source_.labels();
    labels["logits_scaled"] = scale_logits_;
    return labels;
  }

 private:
  AttendOptions attend_;
  MetricSource source_;
  bool scale_logits_;
};

}  // namespace

void EllipticalOptions::visit(FieldList& fields) {
  fields.add_choice("preset",
                    {.names = {"paper", "released-lm", "released-attack"},
                     .get = [this] { return preset; },
                     .set = [this](const std::string& name) { use_preset(name); },
                     .selects_fields = true},
                    "defaults of the other fields: as the paper writes it, or as its code did");
  visit_metric(fields);
  fields.add("scale_logits", scale_logits,
             "divide logits by sqrt(D) in layers that have a metric; the others always do");
}

std::unique_ptr<Options> EllipticalOptions::clone() const {
  return std::make_unique<EllipticalOptions>(*this);
}

void EllipticalOptions::use_preset(const std::string& name) {
  *this = EllipticalOptions();
  preset = name;
  if (name == "released-lm") {
    metric.scope = ops::MetricScope::kSequence;
    scale_logits = false;
  } else if (name == "released-attack") {
    metric.estimator = "median";
  }
}

std::shared_ptr<HeadMixer> make_elliptical_mixer(const EllipticalOptions& options,
                                                 const AttentionShape& shape) {
  return std::make_shared<EllipticalMixer>(options, shape);
}

std::shared_ptr<Attention> make_elliptical(const Options& options, const AttentionShape& shape) {
  return std::make_shared<MultiHead>(
      shape, make_elliptical_mixer(dynamic_cast<const EllipticalOptions&>(options), shape));
}

}  // namespace elliptical::nn
