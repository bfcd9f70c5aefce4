// SPDX-License-Identifier: MIT
#include "elliptical/nn/attention/kde.h"

#include <torch/torch.h>

namespace elliptical::nn {
namespace {

class KdeMixer : public DensityMixer {
 public:
  KdeMixer(const KdeOptions& options, const AttentionShape& shape) : DensityMixer(options, shape) {}
};

}  // namespace

std::unique_ptr<Options> KdeOptions::clone() const { return std::make_unique<KdeOptions>(*this); }

std::shared_ptr<HeadMixer> make_kde_mixer(const KdeOptions& options, const AttentionShape& shape) {
  return std::make_shared<KdeMixer>(options, shape);
}

std::shared_ptr<Attention> make_kde(const Options& options, const AttentionShape& shape) {
  return std::make_shared<MultiHead>(
      shape, make_kde_mixer(dynamic_cast<const KdeOptions&>(options), shape));
}

}  // namespace elliptical::nn
