// SPDX-License-Identifier: MIT
//
// What every model that tells pictures apart is to the rest of the program: normalized pixels
// (B, 3, H, W) in, logits (B, K) out. Models stand in one table (table.cpp) and are chosen by name.
#pragma once

#include <torch/nn/module.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "elliptical/base/options.h"
#include "elliptical/nn/attention/attention.h"
#include "elliptical/nn/feedforward/feed_forward.h"

namespace elliptical::models {

/// Blocks that work on the same number of tokens of the same width; blocks of class attention on
/// one.
struct TokenStage {
  std::string prefix;  ///< of the names of their parameters
  int64_t num_tokens, dim, num_layers;
  nn::FeedForwardCost feed_forward;  ///< of all its layers together
};

/// Options that all of them have.
struct ImageModelOptions : Options {
  int64_t image_size = 224;  ///< height and width of what the model reads
  double drop_path = 0.1;
  ChosenOptions attention{nn::attention_choices(), "elliptical"};

  /// The stages of the model that they describe, which need not be built for it.
  virtual std::vector<TokenStage> stages() const = 0;
  /// Makes the model that they describe one that is trained on a few pictures within seconds.
  virtual void shrink() = 0;
  /// Whether it has a second head, for a teacher to talk to (kSecondHead).
  virtual bool has_second_head() const { return false; }
  /// Weights of matrices of the blocks, by arithmetic.
  double num_block_weights() const;
  /// Numbers that a training step keeps of a picture for the backward, about.
  double kept_activations() const;
  /// Numbers of a picture that exist at once in its widest layer, without a backward.
  double widest_layer() const;

 protected:
  /// `drop_path_help` says how the probability depends on depth.
  void visit_common(FieldList& fields, const char* drop_path_help);
};

/// An output of a pass (Pass::outputs): logits (B, K) of the second head of a distilled model, in
/// training.
inline constexpr const char* kSecondHead = "second_head";

class ImageModel : public torch::nn::Module {
 public:
  /// Logits (B, K); of a distilled model in evaluation the mean of both heads, in training those of
  /// the first one, beside kSecondHead. The caller sets training, random, trace and what else he
  /// wants of `pass`; the layers are counted here. Throws c10::ValueError when the pixels do not
  /// fit.
  at::Tensor forward(const at::Tensor& pixels, nn::Pass& pass);

  /// Normed tokens of the patches in the last stage, (B, side^2, C) row by row, before any head: what
  /// a decoder of maps reads. With `pass` as above.
  at::Tensor features(const at::Tensor& pixels, nn::Pass& pass);

  /// Every parameter as a function of the seed and its name: matrices, tokens and positions
  /// N(0, 0.02^2), convolutions with their biases uniform up to 1 / sqrt(inputs of an output),
  /// other biases 0, norms 1 and 0. What else there is keeps the value it was made with.
  void initialize(uint64_t seed);

  /// Facts for records: model, attention and its labels.
  std::map<std::string, LabelValue> labels() const;
  int64_t num_parameters() const;
  int64_t num_classes() const { return num_classes_; }
  virtual const ImageModelOptions& options() const = 0;
  std::vector<TokenStage> stages() const { return options().stages(); }
  /// That attention sees, in the first layer.
  int64_t num_tokens() const { return stages().front().num_tokens; }
  /// Tokens in front that are no patches, in all layers; the first one's is the class token.
  virtual int64_t num_prefix_tokens() const { return 0; }

 protected:
  explicit ImageModel(int64_t num_classes) : num_classes_(num_classes) {}

  virtual at::Tensor run(const at::Tensor& pixels, nn::Pass& pass) = 0;
  virtual at::Tensor run_features(const at::Tensor& pixels, nn::Pass& pass) = 0;
  virtual const char* name() const = 0;  ///< in the table
  virtual std::map<std::string, LabelValue> own_labels() const { return {}; }
  /// The attention of the last layer: the first one has no metric.
  virtual const nn::Attention& last_attention() const = 0;
  /// Whether linear layers, too, start uniform up to 1 / sqrt(inputs), as torch leaves them.
  virtual bool has_uniform_matrices() const { return false; }
  /// First values that are not the common ones; true where it set them.
  virtual bool initialize_parameter(const std::string&, at::Tensor&, RandomKey) { return false; }

 private:
  void begin(const at::Tensor& pixels, nn::Pass& pass) const;

  const int64_t num_classes_;
};

/// Of the blocks of these models, all of whose maps have biases; their layers are counted elsewhere.
nn::AttentionShape attention_shape(int64_t dim,
                                   int64_t num_heads,
                                   int64_t num_layers,
                                   int64_t num_tokens);

/// Width inside a feed-forward layer of tokens that are `dim` wide.
int64_t hidden_dim(int64_t dim, double ratio);

/// Throws ConfigError where pictures are not a whole number of patches.
void check_patches(int64_t image_size, int64_t patch_size);

/// What a model can do where its options ask for it.
struct ImageModelAbilities {
  bool distils = false;  ///< option `distilled`: a second head, for a teacher to talk to
};

/// One line of the table of models.
struct ImageModelEntry {
  const char* name;
  const char* description;  ///< one true sentence
  ImageModelAbilities can;
  std::unique_ptr<Options> (*make_options)();  ///< derived from ImageModelOptions
  std::shared_ptr<ImageModel> (*make)(const Options& options, int64_t num_classes);
};

/// All models, sorted by name, and the same as choices for ChosenOptions.
const std::vector<ImageModelEntry>& image_model_table();
const std::vector<OptionsEntry>& image_model_choices();

/// Builds the chosen model. Throws ConfigError when the options do not go together. Parameters have
/// no values yet: `initialize` or a file gives them.
std::shared_ptr<ImageModel> make_image_model(const ChosenOptions& chosen, int64_t num_classes);

}  // namespace elliptical::models
