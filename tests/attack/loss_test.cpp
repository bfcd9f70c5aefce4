// SPDX-License-Identifier: MIT
#include "elliptical/attack/loss.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include "tests/attack/small_models.h"
#include "tests/support/error_message.h"
#include "tests/support/gradcheck.h"

namespace elliptical::attack::testing {
namespace {

at::Tensor one(int64_t label) { return at::full({1}, label, at::kLong); }

TEST(Loss, HandCases) {
  const at::Tensor z = at::tensor({3.0, 1.0, 0.0, -1.0}, at::kDouble).view({1, 4});
  EXPECT_DOUBLE_EQ(margin(z, one(0)).item<double>(), 2);
  EXPECT_DOUBLE_EQ(margin(z, one(2)).item<double>(), -3);
  EXPECT_NEAR(dlr(z, one(0)).item<double>(), -2.0 / 3, 1e-11);
  EXPECT_NEAR(targeted_dlr(z, one(0), one(1)).item<double>(), -2.0 / 3.5, 1e-11);
  const double sum = std::exp(3.0) + std::exp(1.0) + 1 + std::exp(-1.0);
  EXPECT_NEAR(cross_entropy(z, one(1)).item<double>(), std::log(sum) - 1, 1e-12);
}

TEST(Loss, DlrSeesNeitherShiftNorScale) {
  const at::Tensor z = wave({40, 6}, 0.3, at::kDouble), y = at::arange(40) % 6;
  const at::Tensor target = (y + 2) % 6;
  // Rounding of double, and 1e-12 in a denominator of order 1.
  EXPECT_LE((dlr(3 * z + 7, y) - dlr(z, y)).abs().max().item<double>(), 1e-9);
  EXPECT_LE(
      (targeted_dlr(3 * z + 7, y, target) - targeted_dlr(z, y, target)).abs().max().item<double>(),
      1e-9);
}

TEST(Loss, DlrIsPositiveExactlyWhereWrong) {
  const at::Tensor z = wave({200, 5}, 1.1), y = at::arange(200) % 5;
  const at::Tensor wrong = is_correct(z, y).logical_not();
  EXPECT_GT(wrong.sum().item<int64_t>(), 0);
  EXPECT_TRUE(at::equal(dlr(z, y) > 0, wrong));
  EXPECT_TRUE(at::equal(margin(z, y) < 0, wrong));
}

TEST(Loss, ClassesAreRankedWithTheLabelFirst) {
  const at::Tensor z = at::tensor({1.0, 5.0, 3.0, 3.0, 0.0, 9.0, 1.0, 1.0}).view({2, 4});
  const at::Tensor expected = at::tensor(std::vector<int64_t>{2, 1, 3, 0, 1, 2, 3, 0}).view({2, 4});
  EXPECT_TRUE(at::equal(ranked_classes(z, at::tensor(std::vector<int64_t>{2, 1})), expected));
}

TEST(Loss, GradientsMatchFiniteDifferences) {
  const LogitsFn net = trained_net(at::kDouble);
  const Labelled data = generated_pictures(2, at::kDouble);
  const at::Tensor target = (data.y + 1) % 5;
  const auto losses = [&](const std::vector<at::Tensor>& inputs) {
    const at::Tensor z = net(inputs[0]);
    return std::vector<at::Tensor>{cross_entropy(z, data.y), dlr(z, data.y), margin(z, data.y),
                                   targeted_dlr(z, data.y, target)};
  };
  EXPECT_TRUE(support::gradients_match(losses, {data.x}));
}

TEST(LossGradient, IsThatOfEachPictureAlone) {
  const LogitsFn net = trained_net(at::kDouble);
  const Labelled data = generated_pictures(3, at::kDouble);
  const LossGradient all =
      loss_gradient(net, data.x, [&](const at::Tensor& z) { return cross_entropy(z, data.y); });
  const at::Tensor y = data.y.narrow(0, 1, 1);
  const LossGradient second = loss_gradient(
      net, data.x.narrow(0, 1, 1), [&](const at::Tensor& z) { return cross_entropy(z, y); });
  EXPECT_LE((all.gradient[1] - second.gradient[0]).abs().max().item<double>(), 1e-15);
  EXPECT_TRUE(at::equal(all.logits, plain_logits(net, data.x)));
  EXPECT_TRUE(at::equal(all.loss, cross_entropy(all.logits, data.y)));
  EXPECT_FALSE(all.logits.requires_grad());
}

TEST(LossGradient, IsTheMeanOverPasses) {
  const LogitsFn net = trained_net(at::kDouble);
  const Labelled data = generated_pictures(3, at::kDouble);
  int64_t pass = 0;
  const LogitsFn drawing = [&](const at::Tensor& x) {
    return net(x) * static_cast<double>(++pass % 3);
  };
  const auto loss = [&](const at::Tensor& z) { return margin(z, data.y); };
  const LossGradient mean = loss_gradient(drawing, data.x, loss, 3);
  const LossGradient plain = loss_gradient(net, data.x, loss);  // factors 1, 2, 0
  EXPECT_LE((mean.gradient - plain.gradient).abs().max().item<double>(), 1e-14);
  EXPECT_LE((mean.loss - plain.loss).abs().max().item<double>(), 1e-14);
  EXPECT_LE((mean.logits - plain.logits).abs().max().item<double>(), 1e-14);
}

TEST(LossGradient, ParametersGetNone) {
  const at::Tensor W = wave({3, 3, 2, 2}).requires_grad_(true);
  const LogitsFn model = linear_model(W, at::zeros({3}));
  const at::Tensor y = at::zeros({2}, at::kLong);
  loss_gradient(model, wave({2, 3, 2, 2}), [&](const at::Tensor& z) { return margin(z, y); });
  EXPECT_FALSE(W.grad().defined());
  EXPECT_TRUE(W.requires_grad());
}

TEST(LossGradient, AModelWithoutGradientIsRefused) {
  const LogitsFn deaf = [](const at::Tensor& x) { return x.detach().flatten(1); };
  const std::string message = test::error_message<c10::Error>([&] {
    loss_gradient(deaf, wave({1, 1, 1, 2}), [](const at::Tensor& z) { return z.sum(1); });
  });
  EXPECT_NE(message.find("attack: the logits must have a gradient with respect to the picture, "
                         "these have none (attacks without gradients: spsa, square)"),
            std::string::npos)
      << message;
}

}  // namespace
}  // namespace elliptical::attack::testing
