// SPDX-License-Identifier: MIT
#include "bench/vision.h"

#include <torch/torch.h>

#include <chrono>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>

#include <unistd.h>

#include "bench/peer_program.h"
#include "elliptical/base/files.h"
#include "elliptical/base/safetensors.h"
#include "elliptical/models/vit.h"
#include "elliptical/ops/adam.h"
#include "elliptical/ops/frozen_weights.h"

namespace elliptical::bench {
namespace {

constexpr double kVisionRate = 1e-4, kWeightDecay = 0.05;

/// The same as in bench/peers/vit.py.
at::Tensor pictures(const VisionCase& shape) {
  const int64_t size = shape.image_size, count = shape.batch * 3 * size * size;
  return (torch::arange(count, torch::kDouble) * 0.7)
      .sin()
      .view({shape.batch, 3, size, size})
      .to(torch::kFloat);
}

models::VitOptions vit_options(const VisionCase& shape, const std::string& attention) {
  models::VitOptions options;
  options.image_size = shape.image_size;
  options.patch_size = shape.patch_size;
  options.dim = shape.dim;
  options.num_layers = shape.num_layers;
  options.num_heads = shape.num_heads;
  options.drop_path = 0.0;
  options.attention.choose(attention);
  return options;
}

class OurVision : public VisionRunner {
 public:
  OurVision(const VisionCase& shape, std::string attention)
      : attention_(std::move(attention)),
        model_(vit_options(shape, attention_), shape.num_classes),
        pixels_(pictures(shape)),
        labels_(torch::arange(shape.batch).remainder(shape.num_classes)) {
    model_.initialize(1);
    parameters_ = model_.parameters();
    for (const at::Tensor& parameter : parameters_) {
      first_.push_back(torch::zeros_like(parameter));
      second_.push_back(torch::zeros_like(parameter));
    }
  }

  std::string name() const override { return attention_; }
  int64_t num_parameters() const override { return model_.num_parameters(); }

  std::vector<double> logits() override {
    const at::Tensor values = infer().to(torch::kDouble).contiguous().view({-1});
    return {values.const_data_ptr<double>(), values.const_data_ptr<double>() + values.numel()};
  }

  double run(VisionPass pass) override {
    const auto start = std::chrono::steady_clock::now();
    pass == VisionPass::kInference ? static_cast<void>(infer()) : train();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  }

 private:
  at::Tensor infer() {
    const torch::NoGradGuard no_grad;
    auto pass = nn::Pass::of_evaluation();
    return model_.forward(pixels_, pass);
  }

  void train() {
    for (at::Tensor& parameter : parameters_) parameter.mutable_grad().reset();
    auto pass = nn::Pass::of_training(
        RandomKey(1).derive("step").derive(static_cast<uint64_t>(++num_steps_)));
    at::cross_entropy_loss(model_.forward(pixels_, pass), labels_).backward();
    std::vector<at::Tensor> gradients;
    gradients.reserve(parameters_.size());
    for (const at::Tensor& parameter : parameters_) gradients.push_back(parameter.grad());
    ops::adam_step(
        parameters_, gradients, first_, second_,
        {.learning_rate = kVisionRate, .weight_decay = kWeightDecay, .step = num_steps_});
  }

  std::string attention_;
  models::Vit model_;
  at::Tensor pixels_, labels_;
  std::vector<at::Tensor> parameters_, first_, second_;
  int64_t num_steps_ = 0;
};

/// First weights in a file, for as long as a peer reads them.
class WeightFile {
 public:
  WeightFile(const VisionCase& shape)
      : path_(std::filesystem::absolute(
            std::filesystem::temp_directory_path() /
            ("elliptical-bench-" + std::to_string(::getpid()) + ".safetensors"))) {
    models::Vit model(vit_options(shape, "softmax"), shape.num_classes);
    model.initialize(1);
    std::vector<TensorBytes> tensors;
    const auto parameters = model.named_parameters();
    for (const auto& item : parameters) {
      const at::Tensor& value = item.value();
      tensors.push_back({item.key(),
                         ElementType::kF32,
                         value.sizes().vec(),
                         {static_cast<const std::byte*>(value.const_data_ptr()), value.nbytes()}});
    }
    std::error_code ignored;
    std::filesystem::remove(path_, ignored);
    FileWriter file(path_, IfThere::kFail);  // others may write to the folder: no link of theirs
    write_safetensors(tensors, {}, [&](std::span<const std::byte> bytes) { file.write(bytes); });
    file.finish();
  }
  ~WeightFile() {
    std::error_code ignored;
    std::filesystem::remove(path_, ignored);
  }
  WeightFile(const WeightFile&) = delete;
  WeightFile& operator=(const WeightFile&) = delete;
  std::string path() const { return path_.string(); }

 private:
  std::filesystem::path path_;
};

class TorchVision : public VisionRunner {
 public:
  TorchVision(const VisionCase& shape, std::string attention, int num_threads)
      : attention_(std::move(attention)),
        program_("vit.py",
                 {{"attention", attention_},
                  {"weights", WeightFile(shape).path()},  // there until the peer has read it
                  {"threads", num_threads},
                  {"batch", shape.batch},
                  {"size", shape.image_size},
                  {"patch", shape.patch_size},
                  {"width", shape.dim},
                  {"layers", shape.num_layers},
                  {"heads", shape.num_heads},
                  {"classes", shape.num_classes}}) {}

  std::string name() const override { return "torch " + attention_; }
  int64_t num_parameters() const override { return program_.num_parameters(); }
  std::vector<double> logits() override {
    return program_.ask({{"logits", true}}).at("logits").get<std::vector<double>>();
  }
  double run(VisionPass pass) override {
    return program_.ask({{"run", to_string(pass)}}).at("seconds").get<double>();
  }

 private:
  std::string attention_;
  PeerProgram program_;
};

/// Peers have the same weights and pictures, so they have to say the same.
void check_logits(const std::vector<VisionRunner*>& runners) {
  for (VisionRunner* ours : runners) {
    for (VisionRunner* peer : runners) {
      if (peer->name() != "torch " + ours->name()) continue;
      const std::vector<double> a = ours->logits(), b = peer->logits();
      double error = a.size() == b.size() ? 0.0 : INFINITY, largest = 0.0;
      for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
        error = std::max(error, std::abs(a[i] - b[i]));
        largest = std::max(largest, std::abs(b[i]));
      }
      // Twelve layers of float32 rounding.
      if (!(error <= 1e-4 * largest)) {
        throw std::runtime_error("bench: " + ours->name() + " and " + peer->name() +
                                 " must give the same logits, differ by " + std::to_string(error));
      }
    }
  }
}

}  // namespace

std::string_view to_string(VisionPass pass) {
  return pass == VisionPass::kInference ? "inference" : "training";
}

std::unique_ptr<VisionRunner> make_our_vision(const VisionCase& shape,
                                              const std::string& attention) {
  return std::make_unique<OurVision>(shape, attention);
}

std::unique_ptr<VisionRunner> make_torch_vision(const VisionCase& shape,
                                                const std::string& attention,
                                                int num_threads) {
  return std::make_unique<TorchVision>(shape, attention, num_threads);
}

const std::vector<VisionTarget>& vision_targets() {
  static const std::vector<VisionTarget> targets = {
      {VisionPass::kInference, "softmax", "torch softmax", 1.25},
      {VisionPass::kInference, "elliptical", "torch softmax", 1.25},
      {VisionPass::kInference, "elliptical", "softmax", 1 / 1.03},
      {VisionPass::kTraining, "softmax", "torch softmax", 1.15},
      {VisionPass::kTraining, "elliptical", "torch softmax", 1.15},
      {VisionPass::kTraining, "elliptical", "softmax", 1 / 1.03},
  };
  return targets;
}

std::vector<VisionResult> measure_vision(const std::vector<VisionRunner*>& runners,
                                         int repeats,
                                         const ProgressFn& progress) {
  check_logits(runners);
  std::vector<VisionResult> results;
  for (const VisionPass pass : {VisionPass::kInference, VisionPass::kTraining}) {
    // An evaluation reads the same weights for all its batches.
    std::optional<ops::FrozenWeights> frozen;
    if (pass == VisionPass::kInference) frozen.emplace();
    const auto timings =
        take_turns(runners.size(),
                   {.repeats = repeats, .what = std::string(to_string(pass)), .progress = progress},
                   [&](size_t i) { return runners[i]->run(pass); });
    for (size_t i = 0; i < runners.size(); ++i) {
      results.push_back({pass, runners[i]->name(), runners[i]->num_parameters(), timings[i]});
    }
  }
  return results;
}

}  // namespace elliptical::bench
