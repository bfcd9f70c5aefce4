// SPDX-License-Identifier: MIT
//
// The Robust Vision Transformer (Mao et al., CVPR 2022): tokens from a convolutional stem, no class
// token and no positions, pre-norm blocks with a convolutional feed-forward layer in one or two
// stages, the mean over tokens as the picture's features.
//
//   stem: conv 7x7 / 2 (3 -> 32), batch norm, max pool 3 / 2, conv 4x4 / 4 (32 -> C): 224 -> 14
//   between stages: depthwise conv 3x3 / 2 that widens
//   logits = head(norm(mean over tokens))
//
// With patch_size = 4, for small pictures, the first convolution has stride 1 and nothing is
// pooled: 32 -> 8. That is ours.
//
// 8,646,376 parameters in RVT-Ti. The starred models have attention.name = "rvt" with
// normalize_keys = false and gated_layers = 10 (tiny) or 5. The first block of a stage has no
// metric: tokens of the stage before are other tokens. Linear layers start as torch leaves them:
// the public code sets the norms alone.
#pragma once

#include "elliptical/models/image_model.h"
#include "elliptical/nn/convolution.h"
#include "elliptical/nn/linear.h"
#include "elliptical/nn/pre_norm_block.h"

namespace elliptical::models {

struct RvtOptions : ImageModelOptions {
  std::string size = "tiny";
  int64_t patch_size = 16;
  std::vector<int64_t> dims{192, 384}, num_layers{10, 2}, num_heads{6, 12};  ///< by stage
  double feedforward_ratio = 4.0;
  bool conv_feedforward = true;

  void visit(FieldList& fields) override;
  std::unique_ptr<Options> clone() const override;
  void use_size(const std::string& name);
  std::vector<TokenStage> stages() const override;
  void shrink() override;
};

class Rvt : public ImageModel {
 public:
  Rvt(const RvtOptions& options, int64_t num_classes);

  const RvtOptions& options() const override { return options_; }

 protected:
  at::Tensor run(const at::Tensor& pixels, nn::Pass& pass) override;
  at::Tensor run_features(const at::Tensor& pixels, nn::Pass& pass) override;
  const char* name() const override { return "rvt"; }
  std::map<std::string, LabelValue> own_labels() const override;
  const nn::Attention& last_attention() const override {
    return stages_.back().back()->attention();
  }
  bool has_uniform_matrices() const override { return true; }

 private:
  at::Tensor patches(const at::Tensor& pixels, nn::Pass& pass);
  at::Tensor stem(const at::Tensor& pixels, bool training) const;

  const RvtOptions options_;
  std::shared_ptr<nn::Convolution> stem_wide_, stem_patches_;
  std::shared_ptr<nn::BatchNorm> stem_norm_;
  std::vector<std::vector<std::shared_ptr<nn::PreNormBlock>>> stages_;
  std::vector<std::shared_ptr<nn::Convolution>> pools_;  ///< between stages
  std::shared_ptr<nn::Norm> norm_;
  std::shared_ptr<nn::Linear> head_;
};

}  // namespace elliptical::models
