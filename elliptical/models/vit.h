// SPDX-License-Identifier: MIT
//
// The vision transformer of DeiT (Touvron et al., ICML 2021): patches of pixels as tokens, a class
// token in front, learned positions, L pre-norm blocks.
//
//   x = [cls (; dist); patches(pixels)] + pos                (B, N, C), N = 1 (+ 1) + grid^2
//   logits = head(norm(block_L(.. block_1(x))_cls))          (B, K)
//
// Distilled: a second token and head learn what a teacher says; evaluation takes the mean of both.
// Parameters have the names of the public checkpoints. Their number, for P x P patches and ratio 4:
// (3 P^2 C + C) + C + N C + L (12 C^2 + 13 C) + 2 C + K C + K; 5,717,416 in DeiT-tiny.
#pragma once

#include "elliptical/models/image_model.h"
#include "elliptical/nn/linear.h"
#include "elliptical/nn/patch_embed.h"
#include "elliptical/nn/pre_norm_block.h"

namespace elliptical::models {

struct VitOptions : ImageModelOptions {
  std::string size = "tiny";
  int64_t patch_size = 16;
  int64_t dim = 192;
  int64_t num_layers = 12;
  int64_t num_heads = 3;
  double feedforward_ratio = 4.0;
  ChosenOptions feedforward{nn::feed_forward_choices(), "gelu"};
  bool distilled = false;

  void visit(FieldList& fields) override;
  std::unique_ptr<Options> clone() const override;
  /// Sets width, layers and heads to those of a published model.
  void use_size(const std::string& name);
  /// Of the blocks.
  nn::FeedForwardShape feed_forward_shape() const;
  /// Tokens in front of the patches.
  int64_t num_prefix_tokens() const { return distilled ? 2 : 1; }
  std::vector<TokenStage> stages() const override;
  void shrink() override;
  bool has_second_head() const override { return distilled; }
};

class Vit : public ImageModel {
 public:
  Vit(const VitOptions& options, int64_t num_classes);

  const VitOptions& options() const override { return options_; }
  /// 1, or 2 in a distilled model.
  int64_t num_prefix_tokens() const override { return options_.num_prefix_tokens(); }

 protected:
  at::Tensor run(const at::Tensor& pixels, nn::Pass& pass) override;
  at::Tensor run_features(const at::Tensor& pixels, nn::Pass& pass) override;
  const char* name() const override { return "vit"; }
  std::map<std::string, LabelValue> own_labels() const override;
  const nn::Attention& last_attention() const override { return blocks_.back()->attention(); }

 private:
  at::Tensor embed(const at::Tensor& pixels) const;

  const VitOptions options_;
  at::Tensor cls_token_, dist_token_, pos_embed_;  ///< (1, 1, C), (1, 1, C), (1, N, C)
  std::shared_ptr<nn::PatchEmbed> patch_embed_;
  std::vector<std::shared_ptr<nn::PreNormBlock>> blocks_;
  std::shared_ptr<nn::Norm> norm_;
  std::shared_ptr<nn::Linear> head_, head_dist_;
};

}  // namespace elliptical::models
