// SPDX-License-Identifier: MIT
//
// Position-aware attention scaling: gates wide open, shut and half open, goldens, messages.
#include "elliptical/nn/attention/rvt.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include "elliptical/base/errors.h"
#include "elliptical/nn/attention/elliptical.h"
#include "elliptical/nn/attention/kernel_density.h"
#include "elliptical/nn/attention/softmax.h"
#include "tests/support/error_message.h"

namespace elliptical::nn::rvt_test {
namespace {

using test::error_message;

at::Tensor rows(std::vector<double> numbers) {
  return torch::tensor(numbers, torch::kDouble).view({1, 1, 4, 2});
}
const at::Tensor kQ = rows({0.1, 0.2, -0.3, 0.4, 0.5, -0.6, 0.7, 0.8});
const at::Tensor kK = rows({0.2, -0.1, 0.4, 0.3, -0.5, 0.6, 0.0, 0.9});
const at::Tensor kV = rows({1, 0, 0, 1, 1, 1, -1, 0.5});

at::Tensor golden_output(bool normalize_keys, at::ScalarType type) {
  RvtAttentionOptions options;
  options.normalize_keys = normalize_keys;
  const auto mixer = make_rvt_mixer(options, {.dim = 2, .num_heads = 1, .window = 4});
  mixer->to(type);
  const at::Tensor v = kV.to(type);
  Pass pass;
  return mixer->mix({kQ.to(type), kK.to(type), v, v}, pass, nullptr).to(torch::kDouble);
}

TEST(RvtAttention, MatchesTheGoldens) {
  // Computed by hand-written loops outside this project, to 8 decimals.
  for (const auto& [type, tolerance] : {std::pair{torch::kDouble, 1e-7}, {torch::kFloat, 1e-5}}) {
    EXPECT_LE((golden_output(true, type) - rows({0.22947709, 0.63227271, 0.21314209, 0.65949213,
                                                 0.31984976, 0.56267889, 0.16896365, 0.64250463}))
                  .abs()
                  .max()
                  .item<double>(),
              tolerance);
    EXPECT_LE((golden_output(false, type) - rows({0.23247070, 0.62855690, 0.23003279, 0.63916526,
                                                  0.28073110, 0.60208256, 0.17073431, 0.63458048}))
                  .abs()
                  .max()
                  .item<double>(),
              tolerance);
  }
}

struct Input {
  at::Tensor q = torch::randn({2, 3, 7, 4}, torch::kDouble),
             k = torch::randn({2, 3, 7, 4}, torch::kDouble),
             v = torch::randn({2, 3, 7, 4}, torch::kDouble),
             previous = torch::randn({2, 3, 7, 4}, torch::kDouble);
  Pass pass() const {
    Pass pass;
    pass.layer = 1;
    pass.previous_q = pass.previous_v = previous;
    return pass;
  }
};

constexpr AttentionShape kShape{
    .dim = 12, .num_heads = 3, .layer = 1, .num_layers = 2, .window = 9};

at::Tensor gated(const Input& in, double gate, const RvtAttentionOptions& options) {
  const auto mixer = make_rvt_mixer(options, kShape);
  mixer->to(torch::kDouble);
  const torch::NoGradGuard no_grad;
  mixer->named_parameters()["gate"].fill_(gate);
  return mixer->mix({in.q, in.k, in.v, in.v}, in.pass(), nullptr);
}

TEST(RvtAttention, OpenGatesAreSoftmaxAndShutOnesTheMean) {
  torch::manual_seed(5);
  const Input in;
  const at::Tensor open = make_softmax_mixer({}, kShape)
                              ->mix({in.q, normalized_keys(in.k), in.v, in.v}, in.pass(), nullptr);
  EXPECT_TRUE(torch::allclose(gated(in, 40.0, {}), open, 0, 1e-12));
  EXPECT_TRUE(torch::allclose(gated(in, -40.0, {}), in.v.mean(2, true).expand_as(in.v), 0, 1e-12));
}

TEST(RvtAttention, TakesAMetric) {
  torch::manual_seed(6);
  const Input in;
  RvtAttentionOptions options;
  options.normalize_keys = false;
  options.is_elliptical = true;
  const at::Tensor elliptical =
      make_elliptical_mixer({}, kShape)->mix({in.q, in.k, in.v, in.v}, in.pass(), nullptr);
  EXPECT_TRUE(torch::allclose(gated(in, 40.0, options), elliptical, 0, 1e-12));
}

TEST(RvtAttention, LaterLayersHaveNoGate) {
  RvtAttentionOptions options;
  options.gated_layers = 1;
  EXPECT_EQ(make_rvt_mixer(options, kShape)->parameters().size(), 0u);
  options.gated_layers = 2;
  EXPECT_EQ(make_rvt_mixer(options, kShape)->parameters().size(), 1u);
  torch::manual_seed(7);
  const Input in;
  options.gated_layers = 0;
  const auto mixer = make_rvt_mixer(options, kShape);
  const at::Tensor open = make_softmax_mixer({}, kShape)
                              ->mix({in.q, normalized_keys(in.k), in.v, in.v}, in.pass(), nullptr);
  EXPECT_TRUE(
      torch::allclose(mixer->mix({in.q, in.k, in.v, in.v}, in.pass(), nullptr), open, 0, 1e-12));
}

TEST(RvtAttention, RefusesWhatItsGateIsNotFor) {
  AttentionShape shape = kShape;
  shape.window = 0;
  EXPECT_EQ(error_message<ConfigError>([&] { make_rvt_mixer({}, shape); }),
            "rvt attention: window must be given, got none: the model around it has no fixed "
            "number of tokens (set window to the longest sequence)");
  shape.window = 6;
  RvtAttentionOptions narrow;
  narrow.window = 5;
  EXPECT_EQ(error_message<ConfigError>([&] { make_rvt_mixer(narrow, shape); }),
            "rvt attention: window must be at least the model's 6 tokens, got 5");
  const Input in;
  const auto mixer = make_rvt_mixer({}, shape);
  mixer->to(torch::kDouble);
  const std::string message = error_message<c10::ValueError>(
      [&] { mixer->mix({in.q, in.k, in.v, in.v}, in.pass(), nullptr); });
  EXPECT_NE(message.find("rvt attention: there must be at most 6 tokens, the size of the learned "
                         "gate, got 7 (train with a larger model.attention.window)"),
            std::string::npos)
      << message;
}

}  // namespace
}  // namespace elliptical::nn::rvt_test
