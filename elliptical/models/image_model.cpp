// SPDX-License-Identifier: MIT
#include "elliptical/models/image_model.h"

#include <torch/torch.h>

#include <algorithm>
#include <cmath>

#include "elliptical/base/errors.h"
#include "elliptical/base/option_limits.h"
#include "elliptical/nn/initialize.h"

namespace elliptical::models {
namespace {

constexpr double kInitialStd = 0.02;

}  // namespace

void ImageModelOptions::visit_common(FieldList& fields, const char* drop_path_help) {
  fields.add("image_size", image_size, "height and width of the pictures that the model reads",
             between(1, kMostSide));
  fields.add("drop_path", drop_path, drop_path_help, below(0, 1));
  fields.add_group("attention", attention);
}

double ImageModelOptions::num_block_weights() const {
  double count = 0;
  for (const auto& [prefix, N, C, L, feed_forward] : stages()) {
    count += 4 * static_cast<double>(C) * static_cast<double>(C * L) + feed_forward.num_weights;
  }
  return count;
}

double ImageModelOptions::kept_activations() const {
  // Per token of a layer beside those of its feed-forward layer: inputs of both branches, q, k, v,
  // what attention gives and its projection: about 9 C.
  double kept = 0;
  for (const auto& [prefix, N, C, L, feed_forward] : stages()) {
    kept += static_cast<double>(N) * (9 * static_cast<double>(C * L) + feed_forward.kept);
  }
  return kept;
}

double ImageModelOptions::widest_layer() const {
  double widest = 0;  // input, q, k, v, what attention gives, and inside a feed-forward layer
  for (const auto& [prefix, N, C, L, feed_forward] : stages()) {
    widest = std::max(widest,
                      static_cast<double>(N) * (5 * static_cast<double>(C) + feed_forward.widest));
  }
  return widest;
}

nn::AttentionShape attention_shape(int64_t dim,
                                   int64_t num_heads,
                                   int64_t num_layers,
                                   int64_t num_tokens) {
  return {.dim = dim,
          .num_heads = num_heads,
          .qkv_bias = true,
          .out_bias = true,
          .num_layers = num_layers,
          .window = num_tokens};
}

int64_t hidden_dim(int64_t dim, double ratio) {
  return static_cast<int64_t>(std::lround(static_cast<double>(dim) * ratio));
}

void check_patches(int64_t image_size, int64_t patch_size) {
  if (image_size % patch_size == 0) return;
  throw ConfigError("model: image_size must be a multiple of patch_size, got image_size = " +
                    std::to_string(image_size) + ", patch_size = " + std::to_string(patch_size));
}

void ImageModel::begin(const at::Tensor& pixels, nn::Pass& pass) const {
  const int64_t size = options().image_size;
  TORCH_CHECK_VALUE(
      pixels.dim() == 4 && pixels.size(1) == 3 && pixels.size(2) == size && pixels.size(3) == size,
      name(), ": pixels must be (B, 3, ", size, ", ", size, "), got ", pixels.sizes());
  pass.is_causal = false;
  pass.begin_layers();
}

at::Tensor ImageModel::forward(const at::Tensor& pixels, nn::Pass& pass) {
  begin(pixels, pass);
  return run(pixels, pass);
}

at::Tensor ImageModel::features(const at::Tensor& pixels, nn::Pass& pass) {
  begin(pixels, pass);
  return run_features(pixels, pass);
}

void ImageModel::initialize(uint64_t seed) {
  const at::NoGradGuard no_grad;
  const RandomKey weights = RandomKey(seed).derive("weights");
  auto parameters = named_parameters();
  const auto is_uniform = [this](const at::Tensor& weight) {
    return weight.dim() == 4 || (weight.dim() == 2 && has_uniform_matrices());
  };
  for (auto& item : parameters) {
    const std::string& name = item.key();
    at::Tensor& parameter = item.value();
    const RandomKey key = weights.derive(name);
    if (initialize_parameter(name, parameter, key)) continue;
    const std::string last = name.substr(name.rfind('.') + 1);
    if (last == "weight" && parameter.dim() == 1) {
      parameter.fill_(1.0);
    } else if ((last == "weight" && parameter.dim() == 2 && !is_uniform(parameter)) ||
               last == "cls_token" || last == "dist_token" || last == "pos_embed") {
      nn::fill_normal(parameter, 0.0, kInitialStd, key);
    } else if (last == "weight" || last == "bias") {
      const at::Tensor* weight =
          parameters.find(name.substr(0, name.size() - last.size()) + "weight");
      if (weight != nullptr && is_uniform(*weight)) {
        const auto num_inputs = static_cast<double>(weight->numel() / weight->size(0));
        nn::fill_uniform(parameter, 1.0 / std::sqrt(num_inputs), key);
      } else {
        parameter.zero_();
      }
    }
  }
}

std::map<std::string, LabelValue> ImageModel::labels() const {
  std::map<std::string, LabelValue> all = last_attention().labels();
  all.merge(own_labels());
  all["attention"] = options().attention.name();
  all["model"] = std::string(name());
  return all;
}

int64_t ImageModel::num_parameters() const {
  int64_t count = 0;
  for (const at::Tensor& parameter : parameters()) count += parameter.numel();
  return count;
}

}  // namespace elliptical::models
