// SPDX-License-Identifier: MIT
#include "elliptical/nn/attention/rkde.h"

#include <torch/torch.h>

#include "elliptical/base/errors.h"

namespace elliptical::nn {
namespace {

using ops::MetricScope;

MetricScope scope_of(const RkdeOptions& options, const AttentionShape& shape) {
  return options.scope.value_or(shape.is_causal ? MetricScope::kPrefix : MetricScope::kSequence);
}

bool sees_future(const RkdeOptions& options, const AttentionShape& shape) {
  return shape.is_causal && scope_of(options, shape) == MetricScope::kSequence;
}

class RkdeMixer : public DensityMixer {
 public:
  RkdeMixer(const RkdeOptions& options, const AttentionShape& shape)
      : DensityMixer(options, shape, sees_future(options, shape)),
        options_(options),
        scope_(scope_of(options, shape)) {
    if (shape.is_causal && options.form == RobustForm::kReleased) {
      throw ConfigError(
          "rkde attention: form must be \"literature\" in a causal model, got \"released\" (the "
          "released language model gives all keys the same weight: that is name = \"kde\")");
    }
    if (sees_future(options, shape) && !options.lookahead) {
      throw ConfigError(
          "rkde attention: scope must be \"prefix\" in a causal model, got \"sequence\": every "
          "token would see the ones after it through the weights of keys (say lookahead = true to "
          "have it so)");
    }
  }

  std::optional<std::string> why_no_streaming() const override {
    if (scope_ == MetricScope::kSequence) {
      return "scope = \"sequence\" reads the whole sequence, so that each new token changes the "
             "weights of all keys before it";
    }
    return "name = \"rkde\" weighs keys by running sums over both densities, which the cache of "
           "keys and values does not hold (kde streams)";
  }

  bool mixes_sequences() const override {
    return options_.form == RobustForm::kReleased && options_.num_iterations > 1;
  }

  std::map<std::string, LabelValue> labels() const override {
    std::map<std::string, LabelValue> labels = DensityMixer::labels();
    labels.insert_or_assign("robust_form", LabelValue(to_string(options_.form)));
    labels.insert_or_assign("robust_loss", LabelValue(to_string(options_.loss)));
    labels.insert_or_assign("weight_scope", LabelValue(std::string(to_string(scope_))));
    return labels;
  }

 private:
  std::optional<KeyWeights> weights(const Heads& heads, const Pass& pass) const override;

  RkdeOptions options_;
  MetricScope scope_;
};

std::optional<KeyWeights> RkdeMixer::weights(const Heads& heads, const Pass& pass) const {
  const bool prefix = scope_ == MetricScope::kPrefix;
  const at::Tensor real = real_keys(heads, pass);
  at::Tensor k = normalized_keys(heads.k), v = heads.v;
  if (real.defined()) {
    k = at::where(real.unsqueeze(-1), k, 0.0);
    v = at::where(real.unsqueeze(-1), v, 0.0);
  }
  const RobustWeightOptions call{.kernel_scale = regression().kernel_scale,
                                 .form = options_.form,
                                 .loss = options_.loss,
                                 .threshold = options_.threshold,
                                 .num_iterations = options_.num_iterations,
                                 .prefix = prefix,
                                 .lengths = pass.key_lengths};
  KeyWeights result;
  result.log_marginal = robust_log_weights(k, call);
  result.log_joint = robust_log_weights(at::cat({k, v}, -1), call);
  result.factor = normalizing_factor(result.log_marginal.exp(), result.log_joint.exp(), real,
                                     prefix && pass.is_causal);
  return result;
}

}  // namespace

void RkdeOptions::visit(FieldList& fields) {
  DensityOptions::visit(fields);
  fields.add_enum(
      "form", form, {"literature", "released"}, robust_form,
      "distance of a key from the density: as in the literature, or with the other sign, "
      "as in the public code");
  fields.add("num_iterations", num_iterations, "how often weights are computed from the last ones",
             between(0, 1000));
  fields.add_enum("loss", loss, {"huber", "hampel"}, robust_loss,
                  "how the weight of a key falls with its distance");
  fields.add("threshold", threshold, "distance up to which a key has its full weight", above(0));
  add_scope(fields, scope, "tokens that judge a key; auto: prefix in causal models, else sequence");
  fields.add("lookahead", lookahead,
             "allows scope = sequence in a causal model, where it sees the future");
}

std::unique_ptr<Options> RkdeOptions::clone() const { return std::make_unique<RkdeOptions>(*this); }

std::shared_ptr<HeadMixer> make_rkde_mixer(const RkdeOptions& options,
                                           const AttentionShape& shape) {
  return std::make_shared<RkdeMixer>(options, shape);
}

std::shared_ptr<Attention> make_rkde(const Options& options, const AttentionShape& shape) {
  return std::make_shared<MultiHead>(
      shape, make_rkde_mixer(dynamic_cast<const RkdeOptions&>(options), shape));
}

}  // namespace elliptical::nn
