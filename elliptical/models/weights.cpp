// SPDX-License-Identifier: MIT
#include "elliptical/models/weights.h"

#include <torch/torch.h>

#include <cmath>
#include <sstream>

#include "elliptical/base/errors.h"

namespace elliptical::models {
namespace {

/// g of g^2, or 0 when `count` is no square.
int64_t side_of(int64_t count) {
  const auto side = static_cast<int64_t>(std::lround(std::sqrt(static_cast<double>(count))));
  return count > 0 && side * side == count ? side : 0;
}

/// (R, P + g^2) -> (R, P + G^2): the last dimension on its grid, the first P as they are.
at::Tensor resize_last(const at::Tensor& rows, int64_t num_prefix, int64_t num_tokens) {
  const int64_t from = side_of(rows.size(1) - num_prefix), to = side_of(num_tokens - num_prefix);
  const at::Tensor grid = rows.narrow(1, num_prefix, from * from).reshape({-1, 1, from, from});
  const at::Tensor resized =
      at::upsample_bicubic2d(grid, {to, to}, /*align_corners=*/false).view({rows.size(0), -1});
  return at::cat({rows.narrow(1, 0, num_prefix), resized}, 1);
}

std::string text_of(at::IntArrayRef sizes) {
  std::ostringstream text;
  text << "(";
  for (size_t i = 0; i < sizes.size(); ++i) text << (i > 0 ? ", " : "") << sizes[i];
  text << ")";
  return text.str();
}

std::string joined(const std::vector<std::string>& parts) {
  // A whole model of wrong names helps nobody.
  constexpr size_t kShown = 20;
  std::string text;
  for (size_t i = 0; i < parts.size() && i < kShown; ++i) text += (i > 0 ? ", " : "") + parts[i];
  if (parts.size() > kShown) text += " and " + std::to_string(parts.size() - kShown) + " more";
  return text;
}

class Loader {
 public:
  Loader(ImageModel& model, const std::string& source) : source_(source) {
    const at::Tensor* cls = model.named_parameters().find("cls_token");
    const at::Tensor* dist = model.named_parameters().find("dist_token");
    num_prefix_ = (cls != nullptr ? 1 : 0) + (dist != nullptr ? 1 : 0);
  }

  void load(const std::string& name, at::Tensor& target, const at::Tensor* value) {
    if (value == nullptr) {
      if (name.find(".mixer.") == std::string::npos) {
        missing_.push_back(name);
      } else {
        notices_.push_back(source_ + ": has no " + name + ", which keeps its first values");
      }
      return;
    }
    const bool is_head = name.starts_with("head.") || name.starts_with("head_dist.");
    if (is_head && value->dim() == target.dim() && value->size(0) != target.size(0)) {
      notices_.push_back(source_ + ": " + name + " is for " + std::to_string(value->size(0)) +
                         " classes, the model has " + std::to_string(target.size(0)) +
                         ": it keeps its first values");
      return;
    }
    const at::Tensor fitted = fit(name, target, *value);
    if (fitted.sizes() != target.sizes()) {
      misfits_.push_back(name + " " + text_of(value->sizes()) + ", must be " +
                         text_of(target.sizes()));
      return;
    }
    target.copy_(fitted);
  }

  void surplus(const std::string& name) { surplus_.push_back(name); }

  std::vector<std::string> finish() {
    std::string what;
    const auto add = [&](const char* title, const std::vector<std::string>& list) {
      if (!list.empty()) what += (what.empty() ? "" : "; ") + std::string(title) + joined(list);
    };
    add("missing ", missing_);
    add("not of the model: ", surplus_);
    add("of another shape: ", misfits_);
    if (!what.empty()) throw DataError(source_ + ": weights must be those of the model, " + what);
    return std::move(notices_);
  }

 private:
  /// `value`, resized where it belongs to positions and the grid differs.
  at::Tensor fit(const std::string& name, const at::Tensor& target, const at::Tensor& value) {
    const bool is_positions = name == "pos_embed", is_gate = name.ends_with(".mixer.gate");
    if (!(is_positions || is_gate) || value.dim() != 3 || value.sizes() == target.sizes()) {
      return value;
    }
    const int64_t from = value.size(1) - num_prefix_, to = target.size(1) - num_prefix_;
    const bool is_square = !is_gate || value.size(1) == value.size(2);
    if (side_of(from) == 0 || side_of(to) == 0 || !is_square) return value;
    notices_.push_back(source_ + ": " + name + " is resized from " + grid_text(from) + " to " +
                       grid_text(to) + " patches");
    return is_positions ? resize_positions(value, num_prefix_, target.size(1))
                        : resize_gates(value, num_prefix_, target.size(1));
  }

  static std::string grid_text(int64_t count) {
    const std::string side = std::to_string(side_of(count));
    return side + " x " + side;
  }

  const std::string& source_;
  int64_t num_prefix_ = 0;
  std::vector<std::string> notices_, missing_, surplus_, misfits_;
};

}  // namespace

at::Tensor resize_positions(const at::Tensor& positions, int64_t num_prefix, int64_t num_tokens) {
  const at::Tensor rows = positions.squeeze(0).t().to(at::kDouble);  // (C, N)
  return resize_last(rows, num_prefix, num_tokens).t().unsqueeze(0).to(positions.scalar_type());
}

at::Tensor resize_gates(const at::Tensor& gates, int64_t num_prefix, int64_t num_tokens) {
  const int64_t H = gates.size(0), N = gates.size(1);
  const at::Tensor keys =
      resize_last(gates.to(at::kDouble).reshape({H * N, N}), num_prefix, num_tokens)
          .view({H, N, num_tokens});
  const at::Tensor queries =
      resize_last(keys.transpose(1, 2).reshape({H * num_tokens, N}), num_prefix, num_tokens);
  return queries.view({H, num_tokens, num_tokens}).transpose(1, 2).to(gates.scalar_type());
}

std::vector<std::string> load_weights(ImageModel& model,
                                      const std::map<std::string, at::Tensor>& weights,
                                      const std::string& source) {
  const at::NoGradGuard no_grad;
  Loader loader(model, source);
  std::map<std::string, at::Tensor> targets;
  for (auto& item : model.named_parameters()) targets.emplace(item.key(), item.value());
  for (auto& item : model.named_buffers()) targets.emplace(item.key(), item.value());
  for (auto& [name, target] : targets) {
    const auto found = weights.find(name);
    loader.load(name, target, found == weights.end() ? nullptr : &found->second);
  }
  for (const auto& [name, value] : weights) {
    // A count that published batch norms carry and nobody reads.
    if (!targets.contains(name) && !name.ends_with(".num_batches_tracked")) loader.surplus(name);
  }
  return loader.finish();
}

}  // namespace elliptical::models
