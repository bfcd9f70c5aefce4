// SPDX-License-Identifier: MIT
#include "tests/attack/small_models.h"

#include <torch/torch.h>

#include <map>

#include "elliptical/base/config.h"

namespace elliptical::attack::testing {
namespace {

constexpr int64_t kClasses = 5, kWidth = 24;

/// W x for each picture by itself: (K, n) and (B, n) -> (B, K).
at::Tensor by_picture(const at::Tensor& W, const at::Tensor& x) {
  return (x.unsqueeze(1) * W).sum(2);
}

/// A class is a wave across the picture, of its own direction: (K, 3, 8, 8).
at::Tensor class_patterns(at::ScalarType dtype) {
  const at::Tensor along_rows = at::tensor({1.0, 0.0, 1.0, 1.0, 0.5}).view({-1, 1, 1, 1});
  const at::Tensor along_columns = at::tensor({0.0, 1.0, 1.0, -1.0, 0.5}).view({-1, 1, 1, 1});
  const at::Tensor row = at::arange(8).view({8, 1}), column = at::arange(8);
  const at::Tensor channel = at::arange(3).view({3, 1, 1});
  const double turn = 2 * M_PI / 8;
  return (turn * (along_rows * row + along_columns * column) + channel).cos().to(dtype);
}

Labelled draw_pictures(RandomKey key, int64_t n, at::ScalarType dtype) {
  auto generator = at::make_generator<at::CPUGeneratorImpl>(key.bits());
  const at::Tensor y = at::arange(n) % kClasses;
  const at::Tensor strength = 0.02 + 0.1 * at::rand({n, 1, 1, 1}, generator).to(dtype);
  const at::Tensor noise = at::randn({n, 3, 8, 8}, generator).to(dtype);
  const at::Tensor x = 0.5 + strength * class_patterns(dtype).index_select(0, y) + 0.1 * noise;
  return {x.clamp(0, 1), y};
}

struct Net {
  at::Tensor w1, b1, w2, b2;
};

at::Tensor net_logits(const Net& net, const at::Tensor& x) {
  const at::Tensor hidden = at::tanh(by_picture(net.w1, x.flatten(1) - 0.5) + net.b1);
  return by_picture(net.w2, hidden) + net.b2;
}

Net train(at::ScalarType dtype) {
  const at::AutoGradMode with_gradient(true);
  const Labelled data = draw_pictures(RandomKey(5), 500, dtype);
  Net net{wave({kWidth, 192}, 0.1, dtype) * 0.1, at::zeros({kWidth}, dtype),
          wave({kClasses, kWidth}, 0.2, dtype) * 0.2, at::zeros({kClasses}, dtype)};
  std::vector<at::Tensor> parameters = {net.w1, net.b1, net.w2, net.b2};
  for (at::Tensor& parameter : parameters) parameter.requires_grad_(true);
  torch::optim::Adam adam(parameters, torch::optim::AdamOptions(0.01));
  for (int64_t step = 0; step < 60; ++step) {
    adam.zero_grad();
    cross_entropy(net_logits(net, data.x), data.y).mean().backward();
    adam.step();
  }
  for (at::Tensor& parameter : parameters) parameter.requires_grad_(false);
  return net;
}

}  // namespace

at::Tensor wave(at::IntArrayRef sizes, double phase, at::ScalarType dtype) {
  const at::Tensor number = at::arange(c10::multiply_integers(sizes), at::kDouble);
  return ((number * number * 0.7 + number * 12.9898 + phase) * 0.37).sin().view(sizes).to(dtype);
}

LogitsFn linear_model(const at::Tensor& W, const at::Tensor& b) {
  return [W, b](const at::Tensor& x) { return by_picture(W.flatten(1), x.flatten(1)) + b; };
}

Labelled generated_pictures(int64_t n, at::ScalarType dtype) {
  return draw_pictures(RandomKey(6), n, dtype);
}

LogitsFn trained_net(at::ScalarType dtype) {
  static std::map<at::ScalarType, Net> nets;
  if (!nets.contains(dtype)) nets[dtype] = train(dtype);
  const Net net = nets[dtype];
  return [net](const at::Tensor& x) { return net_logits(net, x); };
}

Threat pixel_threat(double eps) {
  return {.eps = eps, .low = at::scalar_tensor(0.0), .high = at::scalar_tensor(1.0)};
}

Pictures with_keys(const Labelled& labelled, uint64_t seed, int64_t first) {
  return {.x = labelled.x,
          .y = labelled.y,
          .keys = picture_keys(RandomKey(seed), first, labelled.x.size(0))};
}

ChosenOptions cheap_options(const std::string& attack,
                            const std::vector<std::string>& assignments) {
  static const std::map<std::string, std::vector<std::string>> cheap = {
      {"apgd-ce", {"steps=20"}},
      {"apgd-dlr", {"steps=20"}},
      {"apgd-t", {"steps=20", "num_targets=3"}},
      {"auto-attack",
       {"apgd.steps=10", "apgd_t.steps=10", "apgd_t.num_targets=2", "fab.steps=10",
        "fab.num_targets=2", "square.queries=30"}},
      {"fab-t", {"steps=20", "num_targets=3"}},
      {"spsa", {"steps=5", "pairs=8"}},
      {"square", {"queries=100"}}};
  ChosenOptions chosen(attack_choices(), attack);
  const auto found = cheap.find(attack);
  if (found != cheap.end()) apply_overrides(found->second, fields_of(chosen));
  apply_overrides(assignments, fields_of(chosen));
  return chosen;
}

int64_t num_correct(const LogitsFn& logits, const at::Tensor& x, const at::Tensor& y) {
  return is_correct(plain_logits(logits, x), y).sum().item<int64_t>();
}

}  // namespace elliptical::attack::testing
