// SPDX-License-Identifier: MIT
#include "bench/training.h"

#include <torch/torch.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "bench/line_process.h"
#include "elliptical/base/config.h"
#include "elliptical/base/random.h"
#include "elliptical/models/lm.h"
#include "elliptical/ops/adam.h"

namespace elliptical::bench {
namespace {

constexpr double kTrainingRate = 2.5e-4, kClipNorm = 0.25;

/// The logarithm of a word's rank is uniform: Zipf's law.
at::Tensor zipf_tokens(const TrainingCase& shape) {
  RandomStream random(RandomKey(1).derive("tokens"));
  at::Tensor tokens = torch::empty({shape.batch, shape.window + 1}, torch::kLong);
  int64_t* token = tokens.mutable_data_ptr<int64_t>();
  const double log_size = std::log(static_cast<double>(shape.vocabulary_size));
  for (int64_t i = 0; i < tokens.numel(); ++i) {
    token[i] = static_cast<int64_t>(std::exp(random.uniform() * log_size)) - 1;
  }
  return tokens;
}

class OurTrainer : public Trainer {
 public:
  OurTrainer(const TrainingCase& shape, std::string attention)
      : attention_(std::move(attention)),
        model_(lm_options(shape, attention_), shape.vocabulary_size),
        tokens_(zipf_tokens(shape)) {
    model_.initialize(1);
    parameters_ = model_.parameters();
    for (const at::Tensor& parameter : parameters_) {
      first_.push_back(torch::zeros_like(parameter));
      second_.push_back(torch::zeros_like(parameter));
    }
  }

  std::string name() const override { return attention_; }
  int64_t num_parameters() const override { return model_.num_parameters(); }

  double step(double& loss) override {
    const auto start = std::chrono::steady_clock::now();
    for (at::Tensor& parameter : parameters_) parameter.mutable_grad().reset();
    nn::Pass pass;
    pass.training = true;
    pass.random = RandomKey(1).derive("step").derive(static_cast<uint64_t>(++num_steps_));
    const int64_t window = tokens_.size(1) - 1;
    const at::Tensor hidden = model_.forward(tokens_.narrow(1, 0, window).contiguous(), pass);
    const at::Tensor targets = tokens_.narrow(1, 1, window).reshape({-1});
    const at::Tensor mean = model_.nll(hidden.flatten(0, 1), targets).mean();
    mean.backward();
    std::vector<at::Tensor> gradients;
    for (const at::Tensor& parameter : parameters_) gradients.push_back(parameter.grad());
    const double norm = ops::gradient_norm(gradients);
    ops::adam_step(parameters_, gradients, first_, second_,
                   {.learning_rate = kTrainingRate,
                    .gradient_scale = std::min(1.0, kClipNorm / (norm + 1e-6)),
                    .step = num_steps_});
    loss = mean.item<double>();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  }

 private:
  std::string attention_;
  models::Lm model_;
  at::Tensor tokens_;  ///< (B, N + 1)
  std::vector<at::Tensor> parameters_, first_, second_;
  int64_t num_steps_ = 0;
};

class TorchTrainer : public Trainer {
 public:
  TorchTrainer(const TrainingCase& shape, std::string attention, int num_threads)
      : attention_(std::move(attention)), child_("lm_training.py", {"--serve"}) {
    const nlohmann::json request = {{"open",
                                     {{"attention", attention_},
                                      {"vocab_size", shape.vocabulary_size},
                                      {"threads", num_threads},
                                      {"batch", shape.batch},
                                      {"length", shape.window},
                                      {"layers", shape.num_layers},
                                      {"width", shape.dim},
                                      {"heads", shape.num_heads},
                                      {"hidden", shape.feedforward_dim},
                                      {"dropout", shape.dropout}}}};
    num_parameters_ = ask(request).at("parameters").get<int64_t>();
  }

  std::string name() const override { return "torch " + attention_; }
  int64_t num_parameters() const override { return num_parameters_; }

  double step(double& loss) override {
    const nlohmann::json answer = ask({{"run", 1}});
    loss = answer.at("loss").get<double>();
    return answer.at("seconds").get<double>();
  }

 private:
  nlohmann::json ask(const nlohmann::json& request) {
    const std::string answer = child_.ask(request.dump());
    if (answer.empty()) {
      throw std::runtime_error(
          "bench: the peer lm_training.py gave no answer (run it by hand with " + peer_python() +
          ")");
    }
    return nlohmann::json::parse(answer);
  }

  std::string attention_;
  LineProcess child_;
  int64_t num_parameters_ = 0;
};

}  // namespace

TrainingCase two_core_case() {
  return {.vocabulary_size = 15000,
          .batch = 16,
          .window = 128,
          .num_layers = 4,
          .dim = 64,
          .num_heads = 4,
          .feedforward_dim = 256,
          .cutoffs = {4000}};
}

TrainingCase tiny_case() {
  return {.vocabulary_size = 300,
          .batch = 2,
          .window = 32,
          .num_layers = 2,
          .dim = 32,
          .num_heads = 2,
          .feedforward_dim = 64};
}

ChosenOptions measured_attention(const std::string& name) {
  ChosenOptions chosen(nn::attention_choices(), name);
  if (name == "spkde") apply_overrides({"lookahead=true"}, fields_of(chosen));
  return chosen;
}

models::LmOptions lm_options(const TrainingCase& shape, const std::string& attention) {
  models::LmOptions options;
  options.num_layers = shape.num_layers;
  options.dim = shape.dim;
  options.num_heads = shape.num_heads;
  options.feedforward_dim = shape.feedforward_dim;
  options.window = shape.window;
  options.dropout = shape.dropout;
  if (!shape.cutoffs.empty()) options.cutoffs = shape.cutoffs;
  options.attention = measured_attention(attention);
  return options;
}

std::unique_ptr<Trainer> make_our_trainer(const TrainingCase& shape, const std::string& attention) {
  return std::make_unique<OurTrainer>(shape, attention);
}

std::unique_ptr<Trainer> make_torch_trainer(const TrainingCase& shape,
                                            const std::string& attention,
                                            int num_threads) {
  return std::make_unique<TorchTrainer>(shape, attention, num_threads);
}

const std::vector<TrainingTarget>& training_targets() {
  static const std::vector<TrainingTarget> targets = {
      {"softmax", "torch softmax", 1.5},
      {"elliptical", "torch softmax", 1.5},
      {"elliptical", "torch elliptical", 1.8},
      {"elliptical", "softmax", 1 / 1.03},
  };
  return targets;
}

std::vector<TrainingResult> measure_training(const TrainingCase& shape,
                                             const std::vector<Trainer*>& trainers,
                                             int repeats,
                                             const ProgressFn& progress) {
  std::vector<TrainingResult> results;
  for (const Trainer* trainer : trainers) {
    results.push_back({shape, trainer->name(), trainer->num_parameters(), {}, 0});
  }
  const auto timings =
      take_turns(trainers.size(), {.repeats = repeats, .what = "training", .progress = progress},
                 [&](size_t i) { return trainers[i]->step(results[i].loss); });
  for (size_t i = 0; i < trainers.size(); ++i) results[i].timing = timings[i];
  return results;
}

}  // namespace elliptical::bench
