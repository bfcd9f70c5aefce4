// SPDX-License-Identifier: MIT
//
// Values computed by hand-written loops outside this project, one head, N = 4, D = 2.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "elliptical/nn/attention/elliptical.h"
#include "elliptical/nn/attention/fourier.h"
#include "elliptical/nn/attention/mgk.h"
#include "elliptical/nn/attention/performer.h"
#include "elliptical/nn/attention/softmax.h"

namespace elliptical::nn {
namespace {

at::Tensor rows(std::vector<double> numbers) {
  return torch::tensor(numbers, torch::kDouble).view({1, 1, 4, 2});
}

const at::Tensor kQ = rows({0.1, 0.2, -0.3, 0.4, 0.5, -0.6, 0.7, 0.8});
const at::Tensor kK = rows({0.2, -0.1, 0.4, 0.3, -0.5, 0.6, 0.0, 0.9});
const at::Tensor kV = rows({1, 0, 0, 1, 1, 1, -1, 0.5});
const at::Tensor kVPrevious = rows({0.5, 0.25, 0, 0.5, 1.5, 1, -1, 1});

void expect_golden(HeadMixer& mixer, bool is_causal, std::vector<double> expected) {
  for (const auto type : {torch::kDouble, torch::kFloat}) {
    Pass pass;
    pass.is_causal = is_causal;
    pass.previous_q = kQ.to(type);
    pass.previous_v = kVPrevious.to(type);
    const at::Tensor v = kV.to(type);
    mixer.to(type);
    const at::Tensor out =
        mixer.mix({kQ.to(type), kK.to(type), v, v, kK.to(type) + 0.1}, pass, nullptr);
    // The goldens have 8 decimals.
    const double tolerance = type == torch::kDouble ? 1e-7 : 1e-5;
    EXPECT_LE((out.to(torch::kDouble) - rows(expected)).abs().max().item<double>(), tolerance)
        << out;
  }
}

AttentionShape second_layer(bool is_causal) {
  return {.dim = 2, .num_heads = 1, .is_causal = is_causal, .layer = 1, .num_layers = 2};
}

TEST(AttentionGolden, Softmax) {
  expect_golden(*make_softmax_mixer({}, second_layer(false)), false,
                {0.21480353, 0.63193429, 0.21135723, 0.65265075, 0.31354140, 0.57848459, 0.09066570,
                 0.64266280});
}

TEST(AttentionGolden, SoftmaxCausal) {
  expect_golden(*make_softmax_mixer({}, second_layer(true)), true,
                {1, 0, 0.48232969, 0.51767031, 0.63564542, 0.59773042, 0.09066570, 0.64266280});
}

TEST(AttentionGolden, Elliptical) {
  expect_golden(*make_elliptical_mixer({}, second_layer(false)), false,
                {0.21596298, 0.63247462, 0.20713248, 0.65070154, 0.31764021, 0.58052441, 0.09775777,
                 0.64514694});
}

TEST(AttentionGolden, EllipticalPrefixEndsAsTheSequenceDoes) {
  // The last query sees all tokens in both scopes; the row comes from the table above.
  Pass pass;
  pass.is_causal = true;
  pass.previous_q = kQ;
  pass.previous_v = kVPrevious;
  const at::Tensor out =
      make_elliptical_mixer({}, second_layer(true))->mix({kQ, kK, kV, kV}, pass, nullptr);
  EXPECT_NEAR(out[0][0][3][0].item<double>(), 0.09775777, 1e-7);
  EXPECT_NEAR(out[0][0][3][1].item<double>(), 0.64514694, 1e-7);
}

TEST(AttentionGolden, Fourier) {
  FourierAttentionOptions options;
  options.epsilon = 0;
  expect_golden(*make_fourier_mixer(options, second_layer(false)), false,
                {0.37965380, 0.55877394, 0.39341607, 0.73501059, 0.82507319, 0.17548120,
                 -0.27969052, 0.76137502});
  options.radius = 1;
  expect_golden(*make_fourier_mixer(options, second_layer(false)), false,
                {0.28203991, 0.60714621, 0.27328428, 0.64917578, 0.47444933, 0.48733251, 0.05401133,
                 0.64165324});
}

TEST(AttentionGolden, Mgk) {  // the second keys are the first ones + 0.1
  MgkOptions options;
  options.epsilon = 0;
  options.window = 4;
  const auto mixer = make_mgk_mixer(options, second_layer(false));
  {
    const torch::NoGradGuard no_grad;
    mixer->parameters()[0].copy_(torch::tensor({0.6, 0.4}).view({2, 1, 1}).expand({2, 1, 4}));
  }
  expect_golden(*mixer, false,
                {0.29655797, 0.60498073, 0.29060133, 0.64557463, 0.41643350, 0.51944731, 0.10656794,
                 0.63809000});
}

TEST(AttentionGolden, MgkHard) {
  MgkOptions options;
  options.hard = true;
  expect_golden(*make_mgk_mixer(options, second_layer(false)), false,
                {0.26644731, 0.61554645, 0.26121643, 0.63750665, 0.36254872, 0.55740780, 0.14712394,
                 0.63177058});
}

TEST(AttentionGolden, Performer) {
  PerformerOptions options;
  options.favor = {.hyperbolic = false, .epsilon = 0.0};
  const at::Tensor W = torch::tensor({1.0, 0.5, -0.5, 1.0, 0.3, -0.8, -1.2, 0.1}).view({4, 2});
  expect_golden(*make_performer_mixer(options, second_layer(false), W), false,
                {0.24745138, 0.63643052, 0.25132027, 0.64849400, 0.27878022, 0.60820199, 0.20641665,
                 0.63502044});
}

TEST(AttentionGolden, MetricOfOnesIsSoftmax) {
  EllipticalOptions ones;
  ones.metric.estimator = "constant";
  ones.metric.value = 1.0;
  Pass pass;
  pass.is_causal = true;
  const at::Tensor q = kQ.to(torch::kFloat), k = kK.to(torch::kFloat), v = kV.to(torch::kFloat);
  EXPECT_TRUE(
      at::equal(make_elliptical_mixer(ones, second_layer(true))->mix({q, k, v, v}, pass, nullptr),
                make_softmax_mixer({}, second_layer(true))->mix({q, k, v, v}, pass, nullptr)));
}

}  // namespace
}  // namespace elliptical::nn
