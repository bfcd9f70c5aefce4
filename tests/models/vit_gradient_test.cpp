// SPDX-License-Identifier: MIT
//
// Gradients of a whole vision transformer against differences, in double: with respect to its
// parameters in training, and to the pixels, which is what attacks follow.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "tests/support/gradcheck.h"
#include "tests/support/one_thread.h"
#include "tests/support/small_image_model.h"

namespace elliptical::models {
namespace {

using support::make_image_model;
using support::small_vit;
using support::some_pixels;
using support::stir_parameters;

std::shared_ptr<ImageModel> small_model(const std::vector<std::string>& more) {
  auto model = make_image_model("vit", small_vit(more), 3);
  stir_parameters(*model);
  model->to(torch::kDouble);
  return model;
}

struct Path {
  std::optional<bool> through;
  std::optional<ops::MetricEstimator> estimator = {};
};

at::Tensor logits(ImageModel& model, const at::Tensor& pixels, const Path& path) {
  nn::Pass pass;
  pass.gradient_through_metric = path.through;
  pass.metric_estimator = path.estimator;
  return model.forward(pixels, pass);
}

/// Whether the gradient with respect to the pixels is the slope of the logits.
bool follows_pixels(ImageModel& model, const Path& path) {
  return support::gradients_match(
      [&](const std::vector<at::Tensor>& in) -> std::vector<at::Tensor> {
        return {logits(model, in[0], path)};
      },
      {some_pixels(1, 8).to(torch::kDouble)}, 1e-6, 1e-6);
}

TEST(VitGradient, OfParametersMatchesDifferencesInTraining) {
  const support::OneThread one_thread;
  for (const std::vector<std::string>& more :
       {std::vector<std::string>{"drop_path=0.3", "distilled=true"},
        {"drop_path=0.3", "attention.name=elliptical", "attention.metric_gradient=through"}}) {
    const auto model = small_model(more);
    const at::Tensor pixels = some_pixels(3, 8).to(torch::kDouble);
    const auto loss = [&] {
      auto pass = nn::Pass::of_training(RandomKey(5));
      at::Tensor sum = (model->forward(pixels, pass).sin() * 3).sum();
      for (const auto& [name, second] : pass.outputs) sum = sum + second.cos().sum();
      return sum;
    };
    loss().backward();
    const torch::NoGradGuard no_grad;
    constexpr double kStep = 1e-6;
    for (const auto& item : model->named_parameters()) {
      const at::Tensor flat = item.value().view(-1), gradient = item.value().grad().view(-1);
      for (int64_t i = 0; i < flat.numel(); i += 1 + flat.numel() / 3) {
        const double kept = flat[i].item<double>();
        flat[i] = kept + kStep;
        const double above = loss().item<double>();
        flat[i] = kept - kStep;
        const double below = loss().item<double>();
        flat[i] = kept;
        // Differences of numbers of order 10 with step 1e-6 carry an error of about 1e-8.
        EXPECT_NEAR(gradient[i].item<double>(), (above - below) / (2 * kStep), 1e-6)
            << item.key() << " element " << i;
      }
    }
  }
}

TEST(VitGradient, OfPixelsMatchesDifferences) {
  const support::OneThread one_thread;
  EXPECT_TRUE(follows_pixels(*small_model({}), {}));
  EXPECT_TRUE(follows_pixels(*small_model({"distilled=true"}), {}));
}

TEST(VitGradient, ThroughTheMetricOnlyWhenAsked) {
  const support::OneThread one_thread;
  const auto model = small_model({"attention.name=elliptical"});
  // The metric is a function of the pixels, by the values of this layer and of the one before: a
  // pass that counts it, or either of them, as constant follows another slope.
  EXPECT_FALSE(follows_pixels(*model, {}));
  EXPECT_TRUE(follows_pixels(*model, {.through = true}));
  const auto trained_through =
      small_model({"attention.name=elliptical", "attention.metric_gradient=through"});
  EXPECT_TRUE(follows_pixels(*trained_through, {}));
  EXPECT_FALSE(follows_pixels(*trained_through, {.through = false}));
}

TEST(VitGradient, ThroughEveryEstimatorThatReadsTokens) {
  const support::OneThread one_thread;
  const auto model = small_model({"attention.name=elliptical"});
  for (const ops::MetricEstimator estimator : ops::metric_estimators()) {
    if (!estimator->reads_tokens()) continue;
    EXPECT_TRUE(follows_pixels(*model, {.through = true, .estimator = estimator}))
        << to_string(estimator);
  }
}

TEST(VitGradient, AnotherEstimatorGivesAnotherAnswer) {
  const auto model = small_model({"attention.name=elliptical"});
  const auto median =
      small_model({"attention.name=elliptical", "attention.metric.estimator=median"});
  const at::Tensor pixels = some_pixels(2, 8).to(torch::kDouble);
  const at::Tensor own = logits(*model, pixels, {});
  const at::Tensor other = logits(*model, pixels, {.estimator = ops::MetricEstimator("median")});
  EXPECT_FALSE(at::equal(own, other));
  EXPECT_TRUE(at::equal(other, logits(*median, pixels, {})));
}

}  // namespace
}  // namespace elliptical::models
