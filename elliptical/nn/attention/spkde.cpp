// SPDX-License-Identifier: MIT
#include "elliptical/nn/attention/spkde.h"

#include <torch/torch.h>

#include <cmath>

#include "elliptical/base/errors.h"
#include "elliptical/nn/attention/simplex_qp.h"

namespace elliptical::nn {
namespace {

/// A weight of 0 has no logarithm.
constexpr double kSmallestWeight = 1e-12;

/// (B, M), true for tokens that are no padding.
at::Tensor real_tokens(const at::Tensor& lengths, int64_t num_tokens) {
  return at::arange(num_tokens) < lengths.unsqueeze(-1);
}

std::vector<double> to_vector(const at::Tensor& t) {
  const at::Tensor flat = t.contiguous();
  const double* begin = flat.data_ptr<double>();
  return {begin, begin + flat.numel()};
}

class SpkdeMixer : public DensityMixer {
 public:
  SpkdeMixer(const SpkdeOptions& options, const AttentionShape& shape)
      : DensityMixer(options, shape), outliers_(options.outliers), leaks_(shape.is_causal) {
    if (leaks_ && !options.lookahead) {
      throw ConfigError(
          "spkde attention: lookahead must be true in a causal model, got false: every token sees "
          "the ones after it through the weights of keys (rkde judges keys by the past alone)");
    }
  }

  at::Tensor mix(const Heads& heads,
                 const AttentionContext& context,
                 std::unique_ptr<MixerState>* state) override {
    return kernel_regression(heads, metric(heads, context, state), weights(heads, context),
                             regression(), context);
  }

  std::optional<std::string> why_no_streaming() const override {
    return "name = \"spkde\" weighs the keys of a whole sequence, so that each new token changes "
           "the weights of all keys before it (kde streams)";
  }

  std::map<std::string, LabelValue> labels() const override {
    std::map<std::string, LabelValue> labels = DensityMixer::labels();
    labels["leaks_future"] = leaks_ || std::get<bool>(labels.at("leaks_future"));
    labels["outliers"] = outliers_;
    return labels;
  }

 private:
  KeyWeights weights(const Heads& heads, const AttentionContext& context) const;

  double outliers_;
  bool leaks_;
};

KeyWeights SpkdeMixer::weights(const Heads& heads, const AttentionContext& context) const {
  const at::NoGradGuard no_grad;
  const at::Tensor k = normalized_keys(heads.k.to(at::kDouble)), v = heads.v.to(at::kDouble);
  const ProjectedWeightOptions call{.kernel_scale = regression().kernel_scale,
                                    .outliers = outliers_,
                                    .lengths = context.key_lengths};
  const at::Tensor marginal = projected_weights(k, call).clamp_min(kSmallestWeight),
                   joint = projected_weights(at::cat({k, v}, -1), call).clamp_min(kSmallestWeight);
  // Weights add up to 1 over the keys that a query sees. Without, a first token with a marginal
  // weight of 0 would be multiplied by its joint weight / 1e-12.
  at::Tensor real = at::ones({1, k.size(2)}, at::kBool);
  if (context.key_lengths) real = real_tokens(*context.key_lengths, k.size(2));
  const auto total = [&](const at::Tensor& w) {  // (B|1, N|1)
    at::Tensor sum = w * real;
    sum = context.is_causal ? sum.cumsum(-1) : sum.sum(-1, /*keepdim=*/true);
    return at::where(sum > 0, sum, 1.0);
  };
  const at::Tensor factor = (total(marginal) / total(joint)).unsqueeze(1);
  // A common factor of all weights cancels; this one centers their logarithms, so that float holds
  // them with one more bit.
  const double center = 1.0 / std::sqrt(kSmallestWeight);
  const auto for_all = [&](const at::Tensor& w) { return (w * center).log().view({1, 1, -1}); };
  return {for_all(marginal), for_all(joint), factor.to(heads.q.scalar_type())};
}

}  // namespace

at::Tensor projected_weights(const at::Tensor& x, const ProjectedWeightOptions& options) {
  const at::NoGradGuard no_grad;
  const int64_t B = x.size(0), H = x.size(1), M = x.size(2);
  const double beta = 1.0 / (1.0 - options.outliers);
  at::Tensor gram = at::zeros({M, M}, at::kDouble), target = at::zeros({M}, at::kDouble);
  for (int64_t b = 0; b < B; ++b) {  // one sequence at a time: (H, M, M)
    const int64_t length = options.lengths ? (*options.lengths)[b].item<int64_t>() : M;
    if (length == 0) continue;
    const at::Tensor points = x[b].narrow(1, 0, length).to(at::kDouble);
    const at::Tensor squares = points.square().sum(-1);
    const at::Tensor distances = (squares.unsqueeze(-1) + squares.unsqueeze(-2) -
                                  2.0 * points.matmul(points.transpose(-2, -1)))
                                     .clamp_min(0.0);
    const at::Tensor mean =
        (distances * -options.kernel_scale).exp().sum(0) / static_cast<double>(B * H);
    gram.narrow(0, 0, length).narrow(1, 0, length).add_(mean);
    // Each sequence has its own density, of equal weights on its own points.
    target.narrow(0, 0, length).add_(mean.sum(-1), beta / static_cast<double>(length));
  }
  return at::tensor(solve_simplex_qp(to_vector(gram), to_vector(target)).weights, at::kDouble);
}

void SpkdeOptions::visit(FieldList& fields) {
  DensityOptions::visit(fields);
  fields.add("outliers", outliers, "share of the mass that is taken for outliers", below(0, 1));
  fields.add("lookahead", lookahead,
             "allows weights from all tokens in a causal model, where they see the future");
}

std::unique_ptr<Options> SpkdeOptions::clone() const {
  return std::make_unique<SpkdeOptions>(*this);
}

std::shared_ptr<HeadMixer> make_spkde_mixer(const SpkdeOptions& options,
                                            const AttentionShape& shape) {
  return std::make_shared<SpkdeMixer>(options, shape);
}

std::shared_ptr<Attention> make_spkde(const Options& options, const AttentionShape& shape) {
  return std::make_shared<MultiHead>(
      shape, make_spkde_mixer(dynamic_cast<const SpkdeOptions&>(options), shape));
}

}  // namespace elliptical::nn
