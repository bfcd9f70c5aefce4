// SPDX-License-Identifier: MIT
#include "elliptical/nn/attention/kde.h"

#include <torch/torch.h>

#include "elliptical/nn/attention/kernel_density.h"

namespace elliptical::nn {
namespace {

class KdeMixer : public HeadMixer {
 public:
  explicit KdeMixer(RegressionOptions options) : options_(options) {}

  at::Tensor mix(const Heads& heads,
                 const AttentionContext& context,
                 std::unique_ptr<MixerState>*) override {
    return kernel_regression(heads, {}, {}, options_, context);
  }

  std::map<std::string, LabelValue> labels() const override {
    return {{"kernel_scale", options_.kernel_scale}, {"leaks_future", false}};
  }

 private:
  RegressionOptions options_;
};

}  // namespace

void KdeOptions::visit(FieldList& fields) {
  fields.add("kernel_scale", kernel_scale, "s of the kernel exp(-s d^2); 1 / sqrt(D) when absent",
             above(0));
}

std::unique_ptr<Options> KdeOptions::clone() const { return std::make_unique<KdeOptions>(*this); }

std::shared_ptr<HeadMixer> make_kde_mixer(const KdeOptions& options, const AttentionShape& shape) {
  return std::make_shared<KdeMixer>(
      RegressionOptions{.kernel_scale = options.kernel_scale.value_or(default_kernel_scale(shape)),
                        .dropout = shape.dropout});
}

std::shared_ptr<Attention> make_kde(const Options& options, const AttentionShape& shape) {
  return std::make_shared<MultiHead>(
      shape, make_kde_mixer(dynamic_cast<const KdeOptions&>(options), shape));
}

}  // namespace elliptical::nn
