// SPDX-License-Identifier: MIT
#include "elliptical/nn/attention/performer.h"

#include <torch/torch.h>

#include <cmath>

#include "elliptical/base/errors.h"
#include "elliptical/base/option_limits.h"
#include "elliptical/nn/attention/attend.h"

namespace elliptical::nn {
namespace {

struct PerformerState : MixerState {
  FavorState sums;
  std::unique_ptr<MixerState> metric;
};

class PerformerMixer : public HeadMixer {
 public:
  PerformerMixer(const PerformerOptions& options, const AttentionShape& shape, at::Tensor W)
      : options_(options), head_dim_(shape.head_dim()), W_(std::move(W)) {
    if (shape.dropout > 0.0) {
      throw ConfigError("performer attention: attention_dropout must be 0, got " +
                        std::to_string(shape.dropout) +
                        " (linear attention has no probabilities to drop)");
    }
    const RandomKey key = RandomKey(static_cast<uint64_t>(options.seed)).derive("performer");
    if (!W_.defined()) W_ = draw(key.derive(static_cast<uint64_t>(shape.layer)));
    if (!options.is_elliptical) return;
    const double scale = input_scale() * input_scale();
    source_ = std::make_unique<MetricSource>(options, shape, scale, *this);
    if (!source_->has_one_row()) {
      throw ConfigError(
          "performer attention: the metric must be one row for a whole sequence, got metric.scope "
          "= "
          "\"prefix\" (keys are stretched by it before queries see them: use an estimator that "
          "reads no tokens, a model that is not causal, or elliptical attention)");
    }
  }

  at::Tensor mix(const Heads& heads, const Pass& pass, std::unique_ptr<MixerState>* state) override;
  bool needs_past() const override { return false; }
  std::optional<std::string> why_no_streaming() const override {
    return source_ ? source_->why_no_streaming() : std::nullopt;
  }
  std::map<std::string, LabelValue> labels() const override;

 private:
  at::Tensor draw(RandomKey key) const {
    return draw_favor_projection(options_.projection, options_.num_features, head_dim_, key);
  }
  /// x is multiplied by s, so that the kernel is exp(s^2 q . k).
  double input_scale() const {
    const auto D = static_cast<double>(head_dim_);
    if (options_.logit_scale == "none") return 1.0;
    return std::pow(D, options_.logit_scale == "dim" ? -0.5 : -0.25);
  }

  PerformerOptions options_;
  int64_t head_dim_;
  at::Tensor W_;  ///< (m, D), float
  std::unique_ptr<MetricSource> source_;
};

std::map<std::string, LabelValue> PerformerMixer::labels() const {
  std::map<std::string, LabelValue> all{{"leaks_future", false}};
  if (source_) all = source_->labels();
  all["num_features"] = options_.num_features;
  return all;
}

at::Tensor PerformerMixer::mix(const Heads& heads,
                               const Pass& pass,
                               std::unique_ptr<MixerState>* state) {
  PerformerState* stream = nullptr;
  if (state != nullptr) {
    if (!*state) *state = std::make_unique<PerformerState>();
    stream = &dynamic_cast<PerformerState&>(**state);
  }
  const bool fresh = options_.redraw && pass.training;
  const auto seed = static_cast<uint64_t>(pass.seed("performer"));
  const at::Tensor W = (fresh ? draw(RandomKey(seed)) : W_).to(heads.q.scalar_type());

  at::Tensor k = heads.k, v = heads.v;
  std::optional<at::Tensor> real;
  if (pass.key_lengths) {
    real = (at::arange(k.size(2)) < pass.key_lengths->unsqueeze(-1)).view({-1, 1, k.size(2), 1});
    k = at::where(*real, k, 0.0);
    v = at::where(*real, v, 0.0);
  }
  std::optional<at::Tensor> metric;
  if (source_) metric = source_->metric(heads, pass, stream ? &stream->metric : nullptr);
  TORCH_CHECK_VALUE(!metric || metric->size(2) == 1,
                    "performer attention: the metric must have one row for all tokens, got ",
                    metric ? metric->size(2) : 1, " (evaluate with the scope it was trained with)");
  const auto features = [&](const at::Tensor& x) {
    const at::Tensor scaled = x * input_scale();
    return favor_features(metric ? scaled * metric->sqrt() : scaled, W, options_.favor);
  };
  const FavorFeatures q_features = features(heads.q), k_features = features(k);
  const std::optional<at::Tensor> counted = options_.count_padding ? std::nullopt : real;
  const auto map = [&] {
    return favor_map(q_features, k_features, counted, pass.is_causal, options_.favor);
  };
  if (!stream) leave_trace(heads, metric, map, pass);  // a stream has no keys of the past
  return pass.is_causal ? favor_causal(q_features, k_features, v, options_.favor,
                                       stream ? &stream->sums : nullptr)
                        : favor_two_sided(q_features, k_features, v, counted, options_.favor);
}

}  // namespace

void PerformerOptions::visit(FieldList& fields) {
  fields.add_choice("preset",
                    {.names = {"textbook", "released-lm", "released-lra"},
                     .get = [this] { return preset; },
                     .set = [this](const std::string& name) { use_preset(name); },
                     .selects_fields = true},
                    "defaults of the other fields: as in the literature, or as in the code behind "
                    "published numbers");
  fields.add("num_features", num_features, "random directions m", between(1, kMostWidth));
  fields.add_enum("projection", projection, {"gaussian", "orthogonal", "orthogonal-columns"},
                  favor_projection, "how random directions depend on each other");
  fields.add("hyperbolic", favor.hyperbolic, "use each direction and its opposite: 2 m features");
  fields.add_choice("logit_scale",
                    {.names = {"dim", "none", "sqrt"},
                     .get = [this] { return logit_scale; },
                     .set = [this](const std::string& name) { logit_scale = name; }},
                    "the kernel is exp of q . k / sqrt(D), q . k (none) or q . k / D (dim)");
  fields.add("stabilised", favor.stabilised,
             "epsilon is relative to the largest feature instead of absolute");
  fields.add("epsilon", favor.epsilon, "added to every feature", at_least(0));
  fields.add("denominator_epsilon", favor.denominator_epsilon, "added to the sum of weights",
             at_least(0));
  fields.add("redraw", redraw, "new directions in every training step; seed's in evaluation");
  fields.add("count_padding", count_padding,
             "padded keys count as zero vectors instead of not at all");
  fields.add("seed", seed, "chooses the directions", any_seed(-0x1p63));
  visit_distance(fields);
}

std::unique_ptr<Options> PerformerOptions::clone() const {
  return std::make_unique<PerformerOptions>(*this);
}

void PerformerOptions::use_preset(const std::string& name) {
  *this = PerformerOptions();
  preset = name;
  if (name == "released-lm") {
    num_features = 16;
    projection = FavorProjection::kOrthogonalColumns;
    logit_scale = "none";
    favor.stabilised = false;
    favor.denominator_epsilon = 1e-5;
    redraw = true;
  } else if (name == "released-lra") {
    num_features = 256;
    favor.hyperbolic = false;
    logit_scale = "dim";
    count_padding = true;
  }
}

std::shared_ptr<HeadMixer> make_performer_mixer(const PerformerOptions& options,
                                                const AttentionShape& shape,
                                                at::Tensor W) {
  return std::make_shared<PerformerMixer>(options, shape, std::move(W));
}

std::shared_ptr<Attention> make_performer(const Options& options, const AttentionShape& shape) {
  return std::make_shared<MultiHead>(
      shape, make_performer_mixer(dynamic_cast<const PerformerOptions&>(options), shape));
}

}  // namespace elliptical::nn
