// SPDX-License-Identifier: MIT
#include "elliptical/nn/attention/spkde.h"

#include <torch/torch.h>

#include <cmath>

#include "elliptical/base/errors.h"
#include "elliptical/nn/attention/simplex_qp.h"

namespace elliptical::nn {
namespace {

/// A weight of 0 has no logarithm.
constexpr double kSmallestDensity = 1e-12;

/// Weights further from optimal than this are no weights of the method.
constexpr double kLargestResidual = 1e-5;

std::vector<double> to_vector(const at::Tensor& t) {
  const at::Tensor flat = t.contiguous();
  const double* begin = flat.data_ptr<double>();
  return {begin, begin + flat.numel()};
}

/// exp(-s |x_j - x_l|^2) of points (H, M, E): (H, M, M), double.
at::Tensor gram_matrices(const at::Tensor& x, double kernel_scale) {
  const at::Tensor points = x.to(at::kDouble);
  const at::Tensor squares = points.square().sum(-1);
  const at::Tensor distances = (squares.unsqueeze(-1) + squares.unsqueeze(-2) -
                                2.0 * points.matmul(points.transpose(-2, -1)))
                                   .clamp_min(0.0);
  return (distances * -kernel_scale).exp();
}

at::Tensor solve(const at::Tensor& gram, const at::Tensor& target) {
  const SimplexQpSolution solution = solve_simplex_qp(to_vector(gram), to_vector(target));
  TORCH_CHECK(!(solution.residual > kLargestResidual),
              "spkde attention: the weights of keys must be optimal within ", kLargestResidual,
              ", are within ", solution.residual, " after ", solution.num_steps,
              " steps (try a smaller outliers)");
  return at::tensor(solution.weights, at::kDouble);
}

class SpkdeMixer : public DensityMixer {
 public:
  SpkdeMixer(const SpkdeOptions& options, const AttentionShape& shape)
      : DensityMixer(options, shape, shape.is_causal), options_(options) {
    if (shape.is_causal && !options.lookahead) {
      throw ConfigError(
          "spkde attention: lookahead must be true in a causal model, got false: every token sees "
          "the ones after it through the weights of keys (rkde judges keys by the past alone)");
    }
  }

  std::optional<std::string> why_no_streaming() const override {
    return "name = \"spkde\" weighs the keys of a whole sequence, so that each new token changes "
           "the weights of all keys before it (kde streams)";
  }

  bool mixes_sequences() const override { return !options_.per_head; }

  std::map<std::string, LabelValue> labels() const override {
    std::map<std::string, LabelValue> labels = DensityMixer::labels();
    labels["outliers"] = options_.outliers;
    return labels;
  }

 private:
  std::optional<KeyWeights> weights(const Heads& heads, const Pass& pass) const override;

  SpkdeOptions options_;
};

std::optional<KeyWeights> SpkdeMixer::weights(const Heads& heads, const Pass& pass) const {
  const at::NoGradGuard no_grad;
  const at::Tensor k = normalized_keys(heads.k.to(at::kDouble)), v = heads.v.to(at::kDouble);
  const ProjectedWeightOptions call{.kernel_scale = regression().kernel_scale,
                                    .outliers = options_.outliers,
                                    .per_head = options_.per_head,
                                    .lengths = pass.key_lengths};
  const at::Tensor marginal = projected_weights(k, call).clamp_min(kSmallestDensity),
                   joint = projected_weights(at::cat({k, v}, -1), call).clamp_min(kSmallestDensity);
  // Weights add up to 1 over the keys that a query sees. Without, a first token with a marginal
  // weight of 0 would be multiplied by its joint weight / 1e-12.
  const at::Tensor factor =
      normalizing_factor(marginal, joint, real_keys(heads, pass), pass.is_causal);
  // A common factor of all weights cancels; this one centers their logarithms, so that float holds
  // them with one more bit.
  const double center = 1.0 / std::sqrt(kSmallestDensity);
  return KeyWeights{(marginal * center).log(), (joint * center).log(),
                    factor.to(heads.q.scalar_type())};
}

}  // namespace

at::Tensor projected_weights(const at::Tensor& x, const ProjectedWeightOptions& options) {
  const at::NoGradGuard no_grad;
  const at::Tensor points = x.detach();  // the guard does not stop forward mode
  const int64_t B = x.size(0), H = x.size(1), M = x.size(2);
  const double beta = 1.0 / (1.0 - options.outliers);
  at::Tensor weights =
      at::zeros({options.per_head ? B : 1, options.per_head ? H : 1, M}, at::kDouble);
  at::Tensor shared = at::zeros({M, M}, at::kDouble), target = at::zeros({M}, at::kDouble);
  for (int64_t b = 0; b < B; ++b) {  // one sequence at a time: (H, M, M)
    const int64_t length = options.lengths ? (*options.lengths)[b].item<int64_t>() : M;
    if (length == 0) continue;
    const at::Tensor gram = gram_matrices(points[b].narrow(1, 0, length), options.kernel_scale);
    // Each sequence has its own density, of equal weights on its own points.
    const double scale = beta / static_cast<double>(length);
    for (int64_t h = 0; h < H && options.per_head; ++h) {
      weights[b][h].narrow(0, 0, length).copy_(solve(gram[h], gram[h].sum(-1) * scale));
    }
    if (options.per_head) continue;
    const at::Tensor mean = gram.sum(0) / static_cast<double>(B * H);
    shared.narrow(0, 0, length).narrow(1, 0, length).add_(mean);
    target.narrow(0, 0, length).add_(mean.sum(-1), scale);
  }
  if (!options.per_head) weights[0][0].copy_(solve(shared, target));
  return weights;
}

void SpkdeOptions::visit(FieldList& fields) {
  DensityOptions::visit(fields);
  fields.add("outliers", outliers, "share of the mass that is taken for outliers", below(0, 1));
  fields.add_choice("weights",
                    {.names = {"shared", "per-head"},
                     .get = [this] { return per_head ? "per-head" : "shared"; },
                     .set = [this](const std::string& name) { per_head = name == "per-head"; }},
                    "one set for all sequences and heads of a call, or each has its own");
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
