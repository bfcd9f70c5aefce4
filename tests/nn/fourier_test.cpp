// SPDX-License-Identifier: MIT
//
// Attention by products of sincs: the kernel against the composite form, that one against loops,
// its limits, and what is refused.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cmath>

#include "elliptical/base/errors.h"
#include "elliptical/nn/attention/fourier.h"
#include "elliptical/ops/fourier_attention.h"
#include "tests/support/attention_stack.h"
#include "tests/support/attention_variants.h"
#include "tests/support/error_message.h"
#include "tests/support/gradcheck.h"

namespace elliptical::nn::fourier_test {
namespace {

using ops::FourierOptions;
using support::AttentionStack;
using support::AttentionVariant;
using support::wave;

double difference(const at::Tensor& a, const at::Tensor& b) {
  return (a - b).abs().max().item<double>();
}

struct Problem {
  at::Tensor a, b, v;
  Problem(int64_t B, int64_t H, int64_t N, int64_t M, int64_t D, int64_t Dv, double size)
      : a((wave({B, H, N, D}) * size).to(torch::kDouble)),
        b((wave({B, H, M, D}, 0.3) * size).to(torch::kDouble)),
        v(wave({B, H, M, Dv}, 0.9).to(torch::kDouble)) {}
};

TEST(Fourier, CompositeAgreesWithLoops) {
  const Problem p(1, 1, 7, 7, 3, 2, 1.5);
  for (const double epsilon : {0.0, 0.2}) {
    at::Tensor expected = torch::zeros({1, 1, 7, 2}, torch::kDouble);
    for (int64_t i = 0; i < 7; ++i) {
      double sum = epsilon;
      for (int64_t j = 0; j <= i; ++j) {
        double weight = 1;
        for (int64_t d = 0; d < 3; ++d) {
          const double x = (p.a[0][0][i][d] - p.b[0][0][j][d]).item<double>();
          weight *= std::pow(x == 0 ? 1 : std::sin(x) / x, 4);
        }
        sum += weight;
        expected[0][0][i] += weight * p.v[0][0][j];
      }
      expected[0][0][i] /= sum;
    }
    const FourierOptions options{.is_causal = true, .epsilon = epsilon};
    EXPECT_LE(difference(ops::fourier_attention_composite(p.a, p.b, p.v, options), expected),
              1e-10);
  }
}

/// Values and gradients of the kernel against the composite form in double.
void expect_kernel_agrees(const Problem& p, const FourierOptions& options) {
  const auto run = [&](at::ScalarType type) {
    std::vector<at::Tensor> in;
    for (const at::Tensor& t : {p.a, p.b, p.v}) {
      in.push_back(t.to(type).clone().requires_grad_());
    }
    const at::Tensor out = ops::fourier_attention(in[0], in[1], in[2], options);
    std::vector<at::Tensor> all = torch::autograd::grad({out.sin().sum()}, in);
    all.push_back(out);
    return all;
  };
  const auto kernel = run(torch::kFloat), exact = run(torch::kDouble);
  for (size_t i = 0; i < kernel.size(); ++i) {
    const double size = std::max(1.0, exact[i].abs().max().item<double>());
    EXPECT_LE(difference(kernel[i].to(torch::kDouble), exact[i]) / size, 1e-5) << "tensor " << i;
  }
}

TEST(Fourier, KernelAgreesWithComposite) {
  const FourierOptions causal{.is_causal = true}, damped{.epsilon = 1e-3};
  for (const double size : {0.01, 0.7, 2.0}) {
    expect_kernel_agrees({2, 2, 37, 37, 5, 3, size}, causal);
    expect_kernel_agrees({2, 2, 37, 37, 5, 3, size}, damped);
    expect_kernel_agrees({1, 3, 5, 21, 16, 16, size}, causal);  // a stream: more keys than queries
    expect_kernel_agrees({2, 1, 1, 1, 1, 1, size}, causal);
  }
  expect_kernel_agrees({2, 2, 20, 20, 4, 4, 1.0},
                       {.epsilon = 1e-3, .key_lengths = torch::tensor({20, 11})});
  expect_kernel_agrees({2, 2, 20, 20, 4, 4, 1.0}, {.key_lengths = torch::tensor({3, 0})});
  expect_kernel_agrees({2, 2, 20, 20, 4, 4, 1.0},
                       {.is_causal = true, .dropout_p = 0.4, .dropout_seed = 5});
}

TEST(Fourier, ProductsBeyondTheRangeOfAFloat) {
  // 64 coordinates: weights near exp(-300), which a product of floats does not hold.
  const Problem p(1, 2, 20, 20, 64, 8, 2.0);
  expect_kernel_agrees(p, {.is_causal = true});
  const at::Tensor damped = ops::fourier_attention(p.a.to(torch::kFloat), p.b.to(torch::kFloat),
                                                   p.v.to(torch::kFloat), {.epsilon = 1e-6});
  EXPECT_TRUE(damped.isfinite().all().item<bool>());
  EXPECT_LE(damped.abs().max().item<double>(), 1e-3) << "all weights are far below epsilon";
}

TEST(Fourier, HiddenKeysAreNotRead) {
  const Problem p(1, 1, 20, 20, 4, 4, 1.0);
  at::Tensor a = p.a.to(torch::kFloat), b = p.b.to(torch::kFloat), v = p.v.to(torch::kFloat);
  const FourierOptions causal{.is_causal = true};
  const at::Tensor before = ops::fourier_attention(a, b, v, causal);
  b.narrow(2, 12, 8).fill_(NAN);
  v.narrow(2, 12, 8).fill_(NAN);
  const at::Tensor after = ops::fourier_attention(a, b, v, causal);
  EXPECT_TRUE(at::equal(after.narrow(2, 0, 12), before.narrow(2, 0, 12)));
  EXPECT_TRUE(after.narrow(2, 12, 8).isnan().all().item<bool>());
}

TEST(Fourier, SameBitsForAnyThreadCount) {
  const Problem p(2, 3, 33, 33, 8, 8, 1.0);
  const auto run = [&](int threads) {
    const int before = at::get_num_threads();
    at::set_num_threads(threads);
    at::Tensor a = p.a.to(torch::kFloat).requires_grad_();
    const at::Tensor out =
        ops::fourier_attention(a, p.b.to(torch::kFloat), p.v.to(torch::kFloat), {});
    out.square().sum().backward();
    at::set_num_threads(before);
    return std::pair(out.detach(), a.grad());
  };
  const auto [one, one_gradient] = run(1);
  const auto [two, two_gradient] = run(2);
  EXPECT_TRUE(at::equal(one, two));
  EXPECT_TRUE(at::equal(one_gradient, two_gradient));
}

TEST(Fourier, GradientsMatchDifferencesAlsoWhereCoordinatesAreEqual) {
  Problem p(1, 1, 4, 4, 2, 2, 1.0);
  p.b[0][0][1][0] = p.a[0][0][2][0];
  EXPECT_TRUE(support::gradients_match(
      [](const std::vector<at::Tensor>& in) -> std::vector<at::Tensor> {
        return {ops::fourier_attention_composite(in[0], in[1], in[2],
                                                 {.is_causal = true, .epsilon = 0.1})};
      },
      {p.a, p.b, p.v}));
}

TEST(Fourier, DependsOnDifferencesAlone) {
  const Problem p(1, 2, 9, 9, 4, 4, 1.0);
  const at::Tensor shift = torch::tensor({0.3, -2.0, 1.0, 0.1}, torch::kDouble);
  const at::Tensor map = ops::fourier_map(p.a, p.b, {});
  EXPECT_LE(difference(map, ops::fourier_map(p.a + shift, p.b + shift, {})), 1e-12);
  EXPECT_LE(difference(map.sum(-1), torch::ones({1, 2, 9}, torch::kDouble)), 1e-12);
}

TEST(Fourier, SmallBandwidthsAreGaussianThenUniform) {
  const Problem p(1, 1, 9, 9, 4, 4, 1.0);
  const double R = 0.01;
  const at::Tensor d2 = (p.a.unsqueeze(3) - p.b.unsqueeze(2)).square().sum(-1);
  EXPECT_LE(
      difference(ops::fourier_map(p.a * R, p.b * R, {}), (d2 * (-2.0 / 3 * R * R)).softmax(-1)),
      1e-8);
  EXPECT_LE(difference(ops::fourier_map(p.a * 1e-6, p.b * 1e-6, {}), at::full_like(d2, 1.0 / 9)),
            1e-10);
}

TEST(Fourier, EachOptionHasAnEffect) {
  const auto output = [](const std::vector<std::string>& assignments) {
    const AttentionVariant variant{.attention = "fourier", .assignments = assignments};
    return AttentionStack(variant.options(), {.dim = 12, .num_heads = 3})
        .forward(wave({2, 20, 12}));
  };
  const at::Tensor reference = output({});
  for (const char* assignment : {"radius=1", "epsilon=0.1", "distance=elliptical"}) {
    EXPECT_FALSE(at::equal(output({assignment}), reference)) << assignment;
  }
}

TEST(Fourier, RefusesWhatItCanNotDo) {
  const AttentionVariant variant{.attention = "fourier", .assignments = {"distance=elliptical"}};
  EXPECT_EQ(test::error_message<ConfigError>([&] {
              AttentionStack(variant.options(), {.dim = 12, .num_heads = 3, .is_causal = true});
            }),
            "fourier attention: the metric must be one row for a whole sequence, got metric.scope "
            "= \"prefix\" (keys are stretched by it before queries see them: use an estimator that "
            "reads no tokens, a model that is not causal, or elliptical attention)");
  try {
    ops::fourier_attention(wave({1, 1, 2, 3}), wave({1, 1, 2, 4}), wave({1, 1, 2, 3}), {});
    FAIL();
  } catch (const c10::ValueError& error) {
    EXPECT_STREQ(error.what_without_backtrace(),
                 "fourier_attention: a, b, v must be (B, H, N, D), (B, H, M, D), (B, H, M, Dv), "
                 "got [1, 1, 2, 3], [1, 1, 2, 4], [1, 1, 2, 3]");
  }
}

}  // namespace
}  // namespace elliptical::nn::fourier_test
