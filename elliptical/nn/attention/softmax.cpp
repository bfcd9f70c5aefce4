// SPDX-License-Identifier: MIT
#include "elliptical/nn/attention/softmax.h"

#include <torch/torch.h>

#include "elliptical/nn/attention/attend.h"

namespace elliptical::nn {
namespace {

class SoftmaxMixer : public HeadMixer {
 public:
  explicit SoftmaxMixer(AttendOptions options) : options_(options) {}

  at::Tensor mix(const Heads& heads, const Pass& pass, std::unique_ptr<MixerState>*) override {
    return attend(heads, {}, options_, pass);
  }

  std::map<std::string, LabelValue> labels() const override {
    return {{"leaks_future", false}, {"logits_scaled", !options_.scale.has_value()}};
  }

 private:
  AttendOptions options_;
};

}  // namespace

void SoftmaxOptions::visit(FieldList& fields) {
  fields.add("scale_logits", scale_logits, "divide logits by sqrt(D)");
}

std::unique_ptr<Options> SoftmaxOptions::clone() const {
  return std::make_unique<SoftmaxOptions>(*this);
}

std::shared_ptr<HeadMixer> make_softmax_mixer(const SoftmaxOptions& options,
                                              const AttentionShape& shape) {
  AttendOptions attend{.dropout = shape.dropout};
  if (!options.scale_logits) attend.scale = 1.0;
  return std::make_shared<SoftmaxMixer>(attend);
}

std::shared_ptr<Attention> make_softmax(const Options& options, const AttentionShape& shape) {
  return std::make_shared<MultiHead>(
      shape, make_softmax_mixer(dynamic_cast<const SoftmaxOptions&>(options), shape));
}

}  // namespace elliptical::nn
