// SPDX-License-Identifier: MIT
//
// The Fully Attentional Network (Zhou et al., ICML 2022), ViT family: convolutions as a stem, each
// of which halves the map (four of them for patches of 16), a Fourier code of the grid as
// positions, blocks with attention between tokens and between channels, two blocks of class
// attention.
//
//   x = stem(pixels) + position map                                   (B, grid^2, C)
//   x = x + path(gamma1 * attn(norm1(x)));  x = x + path(gamma2 * channels(norm2(x)))    L times
//   logits = head(norm(class blocks([cls; x]))_cls)
//
// 7,319,920 parameters in FAN-T. Queries, keys and values come from one product, in the order of
// the published q and kv maps. Stochastic depth is the same in all blocks. The stem widens by 2
// from one convolution to the next; that of patches of 4 goes from C / 4 to C, as published.
#pragma once

#include "elliptical/models/image_model.h"
#include "elliptical/nn/class_block.h"
#include "elliptical/nn/convolution.h"
#include "elliptical/nn/pre_norm_block.h"

namespace elliptical::models {

struct FanOptions : ImageModelOptions {
  std::string size = "tiny";
  int64_t patch_size = 16;
  int64_t dim = 192;
  int64_t num_layers = 12;
  int64_t num_heads = 4;
  double feedforward_ratio = 4.0;

  void visit(FieldList& fields) override;
  std::unique_ptr<Options> clone() const override;
  void use_size(const std::string& name);
  /// Of the blocks; those of class attention have as wide ones.
  nn::FeedForwardShape feed_forward_shape() const;
  std::vector<TokenStage> stages() const override;
  void shrink() override;
};

class Fan : public ImageModel {
 public:
  Fan(const FanOptions& options, int64_t num_classes);

  const FanOptions& options() const override { return options_; }

 protected:
  at::Tensor run(const at::Tensor& pixels, nn::Pass& pass) override;
  at::Tensor run_features(const at::Tensor& pixels, nn::Pass& pass) override;
  const char* name() const override { return "fan"; }
  std::map<std::string, LabelValue> own_labels() const override;
  const nn::Attention& last_attention() const override { return blocks_.back()->attention(); }
  bool initialize_parameter(const std::string& name, at::Tensor& parameter, RandomKey key) override;

 private:
  at::Tensor patches(const at::Tensor& pixels, nn::Pass& pass);
  at::Tensor stem(const at::Tensor& pixels, bool training) const;

  const FanOptions options_;
  const int64_t side_;
  std::vector<std::shared_ptr<nn::Convolution>> stem_;
  std::vector<std::shared_ptr<nn::BatchNorm>> stem_norms_;
  std::shared_ptr<nn::Convolution> position_map_;
  at::Tensor position_code_;  ///< (1, grid^2, 64), double
  at::Tensor cls_token_;      ///< (1, 1, C)
  std::vector<std::shared_ptr<nn::PreNormBlock>> blocks_;
  std::vector<std::shared_ptr<nn::ClassBlock>> class_blocks_;
  std::shared_ptr<nn::Norm> norm_;
  std::shared_ptr<nn::Linear> head_;
};

}  // namespace elliptical::models
