// SPDX-License-Identifier: MIT
#include "elliptical/nn/attention/multi_head.h"

#include <torch/torch.h>

#include "elliptical/base/errors.h"

namespace elliptical::nn {
namespace {

struct MultiHeadCache : AttentionCache {
  KeyValueCache tokens;
  std::unique_ptr<MixerState> mixer;
};

/// The cache of the layer that runs, made on first use.
MultiHeadCache& cache_of(AttentionContext& context) {
  auto& caches = *context.caches;
  const auto layer = static_cast<size_t>(context.layer);
  if (caches.size() <= layer) caches.resize(layer + 1);
  if (!caches[layer]) caches[layer] = std::make_unique<MultiHeadCache>();
  return dynamic_cast<MultiHeadCache&>(*caches[layer]);
}

}  // namespace

MultiHead::MultiHead(const AttentionShape& shape, std::shared_ptr<HeadMixer> mixer)
    : num_heads_(shape.num_heads) {
  if (shape.num_heads < 1 || shape.dim < 1 || shape.dim % shape.num_heads != 0) {
    throw ConfigError(
        "attention: dim must be a multiple of num_heads, got dim = " + std::to_string(shape.dim) +
        ", num_heads = " + std::to_string(shape.num_heads));
  }
  qkv_ = register_module("qkv", std::make_shared<Linear>(shape.dim, 3 * shape.dim, shape.qkv_bias));
  proj_ = register_module("proj", std::make_shared<Linear>(shape.dim, shape.dim, shape.out_bias));
  mixer_ = register_module("mixer", std::move(mixer));
}

at::Tensor MultiHead::forward(const at::Tensor& x, AttentionContext& context) {
  const int64_t B = x.size(0), N = x.size(1), C = x.size(2);
  const std::vector<at::Tensor> parts =
      qkv_->forward(x).view({B, N, 3, num_heads_, C / num_heads_}).unbind(2);
  const auto heads = [&](size_t i) { return parts[i].transpose(1, 2); };  // (B, H, N, D)
  const at::Tensor q = heads(0), k = heads(1), v = heads(2);

  at::Tensor mixed;  // (B, H, N, D)
  if (context.caches != nullptr) {
    MultiHeadCache& cache = cache_of(context);
    const auto [all_k, all_v] = cache.tokens.append(k, v);
    mixed = mixer_->mix({q, all_k, all_v, v}, context, &cache.mixer);
  } else {
    mixed = mixer_->mix({q, k, v, v}, context, nullptr);
  }
  context.previous_q = q;
  context.previous_v = v;
  return proj_->forward(mixed.transpose(1, 2).reshape({B, N, C}));
}

}  // namespace elliptical::nn
