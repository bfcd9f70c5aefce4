// SPDX-License-Identifier: MIT
#include "elliptical/nn/attention/multi_head.h"

#include <torch/torch.h>

#include "elliptical/base/errors.h"
#include "elliptical/ops/qkv_attention.h"

namespace elliptical::nn {
namespace {

struct MultiHeadCache : AttentionCache {
  KeyValueCache tokens;
  std::unique_ptr<MixerState> mixer;

  /// Appends keys and values of new tokens, and puts all so far in their place.
  void append(HeadMixer::Heads& heads) {
    heads.qkv = at::Tensor();
    if (!heads.second_k.defined()) {
      std::tie(heads.k, heads.v) = tokens.append(heads.k, heads.v);
      return;
    }
    // Both sets of keys side by side.
    const int64_t D = heads.k.size(3);
    const auto [k, v] = tokens.append(at::cat({heads.k, heads.second_k}, -1), heads.v);
    heads.k = k.narrow(3, 0, D);
    heads.second_k = k.narrow(3, D, D);
    heads.v = v;
  }
};

/// The cache of the layer that runs, made on first use.
MultiHeadCache& cache_of(Pass& pass) {
  auto& caches = *pass.caches;
  const auto layer = static_cast<size_t>(pass.layer);
  if (caches.size() <= layer) caches.resize(layer + 1);
  if (!caches[layer]) caches[layer] = std::make_unique<MultiHeadCache>();
  return dynamic_cast<MultiHeadCache&>(*caches[layer]);
}

}  // namespace

MultiHead::MultiHead(const AttentionShape& shape, std::shared_ptr<HeadMixer> mixer)
    : num_heads_(shape.num_heads) {
  if (shape.num_heads < 1 || shape.dim < 1 ||
      (shape.head_width == 0 && shape.dim % shape.num_heads != 0)) {
    throw ConfigError(
        "attention: dim must be a multiple of num_heads, got dim = " + std::to_string(shape.dim) +
        ", num_heads = " + std::to_string(shape.num_heads));
  }
  head_dim_ = shape.head_dim();
  const int64_t C = shape.dim, width = num_heads_ * head_dim_;
  const auto linear = [&](const char* name, int64_t in, int64_t out, bool bias) {
    return register_module(name, std::make_shared<Linear>(in, out, bias));
  };
  qkv_ = linear("qkv", C, 3 * width, shape.qkv_bias);
  // A map of its own, so that qkv starts with the same values as in any other variant.
  if (mixer->needs_second_keys()) second_keys_ = linear("second_keys", C, width, shape.qkv_bias);
  proj_ = linear("proj", width, C, shape.out_bias);
  mixer_ = register_module("mixer", std::move(mixer));
}

HeadMixer::Heads MultiHead::project(const at::Tensor& x) const {
  const ops::QkvHeads heads = ops::split_heads(qkv_->forward(x), num_heads_);
  HeadMixer::Heads all{heads.q, heads.k, heads.v, heads.v};
  all.qkv = heads.all;
  if (second_keys_) {
    const at::Tensor second = second_keys_->forward(x);
    all.second_k =
        second.view({x.size(0), x.size(1), num_heads_, head_dim_}).transpose(1, 2);  // (B, H, N, D)
  }
  return all;
}

at::Tensor MultiHead::forward(const at::Tensor& x, Pass& pass) {
  HeadMixer::Heads heads = project(x);
  std::unique_ptr<MixerState>* state = nullptr;
  if (pass.caches != nullptr) {
    MultiHeadCache& cache = cache_of(pass);
    state = &cache.mixer;
    if (mixer_->needs_past()) cache.append(heads);
  }
  const at::Tensor mixed = mixer_->mix(heads, pass, state);  // (B, H, N|num_kept, D)
  pass.previous_q = heads.q;
  pass.previous_v = heads.v_new;
  const at::Tensor branch = mixed.transpose(1, 2).reshape({x.size(0), mixed.size(2), -1});
  pass.keep(Traced::kBranch, branch);
  const at::Tensor projected = proj_->forward(branch);
  pass.keep(Traced::kProjectedBranch, projected);
  return projected;
}

}  // namespace elliptical::nn
