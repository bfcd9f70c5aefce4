// SPDX-License-Identifier: MIT
//
// Attention as most variants have it: project tokens to queries, keys and values of H heads, mix
// each head, project back.
//
//   [q | k | v] = x Wqkv^T (+ b)     x (B, N, C), Wqkv (3 H D, C), as a rule H D = C
//   out = concat_h mix(q_h, k_h, v_h) Wproj^T (+ b)
//
// One product makes all three, and heads are strided views of its result: nothing is copied. What
// happens between the projections is a HeadMixer. With `pass.caches` the tokens are the next
// ones of a stream: their keys and values are appended to those before.
#pragma once

#include <memory>

#include "elliptical/nn/attention/attention.h"
#include "elliptical/nn/attention/key_value_cache.h"
#include "elliptical/nn/linear.h"

namespace elliptical::nn {

/// What a mixer may need to go on with a stream, beside keys and values.
struct MixerState {
  virtual ~MixerState() = default;
};

/// The part of an attention variant between the projections.
class HeadMixer : public torch::nn::Module {
 public:
  /// q (B, H, N, D), k and v (B, H, M, D); M > N when streaming. `v_new` (B, H, N, D) are the
  /// values of the tokens that q belongs to. Returns (B, H, N, D). `state` lives as long as a
  /// stream does; null outside of one.
  struct Heads {
    at::Tensor q, k, v, v_new;
    at::Tensor second_k = {};  ///< like k, for mixers that ask for a second set of keys
    /// (B, N, 3, H, D): what q, k and v are views of (ops/qkv_attention.h). Undefined where they
    /// are not: who replaces one of them leaves this out.
    at::Tensor qkv = {};
  };
  virtual at::Tensor mix(const Heads& heads,
                         const Pass& pass,
                         std::unique_ptr<MixerState>* state) = 0;
  /// Whether a stream's keys and values are to be kept; without, `heads` are those of new tokens.
  virtual bool needs_past() const { return true; }
  /// Whether tokens are to be projected to a second set of keys, by a map of its own.
  virtual bool needs_second_keys() const { return false; }
  virtual std::optional<std::string> why_no_streaming() const { return std::nullopt; }
  virtual bool mixes_sequences() const { return false; }
  virtual std::map<std::string, LabelValue> labels() const { return {}; }
};

/// Wraps a mixer. Parameters: qkv.weight, proj.weight, second_keys.weight where the mixer asks for
/// them, with biases where the shape says so, and those of the mixer below `mixer`.
class MultiHead : public Attention {
 public:
  MultiHead(const AttentionShape& shape, std::shared_ptr<HeadMixer> mixer);

  at::Tensor forward(const at::Tensor& x, Pass& pass) override;
  std::optional<std::string> why_no_streaming() const override {
    return mixer_->why_no_streaming();
  }
  bool mixes_sequences() const override { return mixer_->mixes_sequences(); }
  std::map<std::string, LabelValue> labels() const override { return mixer_->labels(); }

 private:
  HeadMixer::Heads project(const at::Tensor& x) const;

  int64_t num_heads_, head_dim_;
  std::shared_ptr<Linear> qkv_, proj_;
  std::shared_ptr<Linear> second_keys_;  ///< null where there are none
  std::shared_ptr<HeadMixer> mixer_;
};

}  // namespace elliptical::nn
