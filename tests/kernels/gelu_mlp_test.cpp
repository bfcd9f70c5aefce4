// SPDX-License-Identifier: MIT
//
// The feed-forward layer with GELU against its reference with error bounds, alone and between two
// norms, forward and backward; gelu itself over all of its range.
#include "elliptical/kernels/gelu_mlp.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "elliptical/kernels/gelu_mlp_reference.h"
#include "tests/kernels/differences.h"
#include "tests/kernels/floats.h"
#include "tests/kernels/layer_sizes.h"
#include "tests/kernels/on_every_target.h"
#include "tests/kernels/threads.h"

namespace elliptical::kernels::test {

/// What gelu_mlp.h promises of gelu.
constexpr double gelu_bound(double z) { return 2e-7 * std::max(1.0, std::abs(z)); }
/// Phi and z phi(z) have an error like gelu's each.
constexpr double kSlopeBound = 4e-7;

// For the reference, which finds them by their argument. Slopes of gelu and gelu' are below 1.13
// and 0.8.
inline Bounded gelu(const Bounded& z) {
  return {kernels::gelu(z.value), 1.13 * z.error() + gelu_bound(z.value)};
}
inline Bounded gelu_slope(const Bounded& z) {
  return {kernels::gelu_slope(z.value), 0.8 * z.error() + kSlopeBound};
}

namespace gelu_mlp_test {
namespace {

Floats packed(int64_t K, int64_t N, ConstMatrix b) {
  Floats result(packed_size(K, N));
  pack(K, N, b, result.data(), serial_for);
  return result;
}

struct Layer {
  int64_t rows, C, F;
  Floats x, up, up_bias, down, down_bias, dy, residual, weight, norm_bias;

  Layer(int64_t rows_in, int64_t C_in, int64_t F_in, Random& random)
      : rows(rows_in),
        C(C_in),
        F(F_in),
        x(Floats::normal(rows * C, random)),
        up(Floats::normal(F * C, random, 1 / std::sqrt(static_cast<double>(C + 1)))),
        up_bias(Floats::normal(F, random)),
        down(Floats::normal(C * F, random, 1 / std::sqrt(static_cast<double>(F + 1)))),
        down_bias(Floats::normal(C, random)),
        dy(Floats::normal(rows * C, random)),
        residual(Floats::normal(rows * C, random)),
        weight(Floats::normal(C, random)),
        norm_bias(Floats::normal(C, random)) {}

  std::string describe() const {
    return std::to_string(rows) + " rows, C " + std::to_string(C) + ", F " + std::to_string(F);
  }
};

Layer random_layer(uint64_t seed) {
  Random random(seed);
  constexpr int64_t rows[] = {0, 1, 2, 3, 11, 12, 13, 47, 48, 49, 61};
  constexpr int64_t widths[] = {1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 32, 33};
  return {random.pick(rows), random.pick(widths), random.pick(widths), random};
}

struct Forward {
  Floats y, z, slope, normed;
};

Forward run_forward(const Layer& l,
                    bool keeps_z,
                    bool keeps_slope,
                    bool has_norms,
                    const ParallelFor& parallel_for = serial_for) {
  Forward out{Floats(l.rows * l.C), Floats(l.rows * l.F), Floats(l.rows * l.F),
              Floats(l.rows * l.C)};
  const Floats up = packed(l.C, l.F, {l.up.data(), 1, l.C}),
               down = packed(l.F, l.C, {l.down.data(), 1, l.F});
  const NormParameters<float> norm{l.weight.data(), l.norm_bias.data(), 1e-5};
  const GeluMlpNorms norms{l.residual.data(), norm, norm, out.normed.data()};
  gelu_mlp_forward({.rows = l.rows,
                    .C = l.C,
                    .F = l.F,
                    .x = l.x.data(),
                    .up = up.data(),
                    .up_bias = l.up_bias.data(),
                    .down = down.data(),
                    .down_bias = l.down_bias.data(),
                    .z = keeps_z ? out.z.data() : nullptr,
                    .slope = keeps_slope ? out.slope.data() : nullptr,
                    .y = out.y.data(),
                    .norms = has_norms ? &norms : nullptr},
                   parallel_for);
  return out;
}

struct Backward {
  Floats dx, dz, hidden;
};

/// From the forward's z or its slope.
Backward run_backward(const Layer& l,
                      const Floats* z,
                      const Floats* slope,
                      bool of_weights,
                      const ParallelFor& parallel_for = serial_for) {
  Backward out{Floats(l.rows * l.C), Floats(l.rows * l.F), Floats(l.rows * l.F)};
  const Floats up = packed(l.F, l.C, {l.up.data(), l.C, 1}),
               down = packed(l.C, l.F, {l.down.data(), l.F, 1});
  gelu_mlp_backward({.rows = l.rows,
                     .C = l.C,
                     .F = l.F,
                     .dy = l.dy.data(),
                     .z = z ? z->data() : nullptr,
                     .slope = slope ? slope->data() : nullptr,
                     .down = down.data(),
                     .up = up.data(),
                     .dx = out.dx.data(),
                     .dz = of_weights ? out.dz.data() : nullptr,
                     .hidden = of_weights ? out.hidden.data() : nullptr},
                    parallel_for);
  return out;
}

/// A layer's weights as exact numbers.
struct ExactWeights {
  explicit ExactWeights(const Layer& l)
      : up(l.up.as<Bounded>()),
        up_bias(l.up_bias.as<Bounded>()),
        down(l.down.as<Bounded>()),
        down_bias(l.down_bias.as<Bounded>()),
        weights{l.C, l.F, up.data(), up_bias.data(), down.data(), down_bias.data()} {}

  std::vector<Bounded> up, up_bias, down, down_bias;
  GeluMlpWeights<Bounded> weights;
};

TEST(GeluMlp, GeluAndItsSlopeAreWithinTheirBounds) {
  // A layer of width 1 with weights of 1 and no biases is gelu.
  std::vector<float> points;
  for (int64_t i = -60'000; i <= 60'000; ++i) points.push_back(static_cast<float>(i) * 2e-4f);
  for (const float far :
       {15.0f, 30.0f, 100.0f, 800.0f, 1e4f, 1e10f, 1e25f, 3e38f, 1e-10f, 1e-40f}) {
    points.insert(points.end(), {far, -far});
  }
  Random random(1);
  Layer layer(static_cast<int64_t>(points.size()), 1, 1, random);
  layer.x = Floats(points);
  layer.up = layer.down = Floats(1, 1.0f);
  layer.up_bias = layer.down_bias = Floats(1, 0.0f);
  on_every_target([&] {
    const Forward out = run_forward(layer, true, true, false);
    expect_same_bits(out.z, layer.x, "z");
    for (int64_t i = 0; i < layer.rows; ++i) {
      const double z = out.z[i];
      ASSERT_NEAR(out.y[i], kernels::gelu(z), gelu_bound(z)) << z;
      ASSERT_NEAR(out.slope[i], kernels::gelu_slope(z), kSlopeBound) << z;
    }
  });
}

TEST(GeluMlp, ForwardMatchesTheReference) {
  on_every_target([] {
    for (uint64_t seed = 0; seed < kLayerCases && !testing::Test::HasFailure(); ++seed) {
      const Layer l = random_layer(seed);
      const ExactWeights exact(l);
      std::vector<Bounded> z(static_cast<size_t>(l.rows * l.F)), slope(z), y(l.x.as<Bounded>());
      gelu_mlp_reference_forward(l.rows, exact.weights, l.x.as<Bounded>().data(), z.data(),
                                 y.data());
      for (size_t i = 0; i < z.size(); ++i) slope[i] = gelu_slope(z[i]);
      const std::string what = "case " + std::to_string(seed) + ", " + l.describe();
      const Forward out = run_forward(l, true, false, false);
      expect_within(out.y, y, what + ": y");
      expect_within(out.z, z, what + ": z");
      const Forward attacked = run_forward(l, false, true, false);
      expect_within(attacked.slope, slope, what + ": slope");
      expect_same_bits(attacked.y, out.y, what + ": y beside the slope");
      expect_same_bits(run_forward(l, false, false, false).y, out.y, what + ": y alone");
    }
  });
}

TEST(GeluMlp, BetweenNormsMatchesTheReference) {
  on_every_target([] {
    for (uint64_t seed = 0; seed < kLayerCases / 3 && !testing::Test::HasFailure(); ++seed) {
      const Layer l = random_layer(seed);
      const ExactWeights exact(l);
      const auto weight = l.weight.as<Bounded>(), norm_bias = l.norm_bias.as<Bounded>();
      const NormParameters<Bounded> norm{weight.data(), norm_bias.data(), 1e-5};
      std::vector<Bounded> y(l.x.as<Bounded>()), normed(y);
      normed_gelu_mlp_reference_forward(l.rows, exact.weights, norm, norm, l.x.as<Bounded>().data(),
                                        l.residual.as<Bounded>().data(), y.data(), normed.data());
      const std::string what = "case " + std::to_string(seed) + ", " + l.describe();
      const Forward out = run_forward(l, false, false, true);
      expect_within(out.y, y, what + ": y");
      expect_within(out.normed, normed, what + ": normed");
    }
  });
}

TEST(GeluMlp, BackwardMatchesTheReference) {
  on_every_target([] {
    for (uint64_t seed = 0; seed < kLayerCases && !testing::Test::HasFailure(); ++seed) {
      const Layer l = random_layer(seed);
      const ExactWeights exact(l);
      const Forward forward = run_forward(l, true, true, false);
      const auto z = forward.z.as<Bounded>();
      std::vector<Bounded> dz(z), hidden(z), dx(l.dy.as<Bounded>());
      gelu_mlp_reference_backward(l.rows, exact.weights, l.dy.as<Bounded>().data(), z.data(),
                                  dz.data(), dx.data());
      for (size_t i = 0; i < z.size(); ++i) hidden[i] = gelu(z[i]);
      const std::string what = "case " + std::to_string(seed) + ", " + l.describe();
      const Backward out = run_backward(l, &forward.z, nullptr, true);
      expect_within(out.dx, dx, what + ": dx");
      expect_within(out.dz, dz, what + ": dz");
      expect_within(out.hidden, hidden, what + ": hidden");
      expect_same_bits(run_backward(l, &forward.z, nullptr, false).dx, out.dx, what + ": dx alone");
      expect_within(run_backward(l, nullptr, &forward.slope, false).dx, dx, what + ": by slope");
    }
  });
}

TEST(GeluMlp, ReferenceGradientMatchesDifferences) {
  constexpr int64_t kRows = 3, kC = 4, kF = 5;
  Random random(4);
  const Inputs w = normal_inputs({kF * kC, kF, kC * kF, kC}, random);
  const GeluMlpWeights<double> weights{kC, kF, w[0].data(), w[1].data(), w[2].data(), w[3].data()};
  std::vector<double> z(kRows * kF), dz(z);
  const auto forward = [&](const Inputs& in) {
    std::vector<double> y(kRows * kC);
    gelu_mlp_reference_forward(kRows, weights, in[0].data(), z.data(), y.data());
    return y;
  };
  const Inputs x = normal_inputs({kRows * kC}, random);
  const std::vector<double> dy = normal_inputs({kRows * kC}, random)[0];
  forward(x);
  Inputs gradients = x;
  gelu_mlp_reference_backward(kRows, weights, dy.data(), z.data(), dz.data(), gradients[0].data());
  expect_gradients_match_differences(forward, x, dy, gradients);
}

TEST(GeluMlp, NanStaysInItsRow) {
  on_every_target([] {
    for (const int64_t bad : {0, 12, 47, 48, 60}) {
      Random random(5);
      Layer l(61, 9, 17, random);
      const Forward clean = run_forward(l, false, false, true);
      l.x[bad * l.C + 3] = std::numeric_limits<float>::quiet_NaN();
      const Forward dirty = run_forward(l, false, false, true);
      for (int64_t i = 0; i < l.rows * l.C; ++i) {
        if (i / l.C == bad) {
          ASSERT_TRUE(std::isnan(dirty.y[i]) && std::isnan(dirty.normed[i])) << i;
        } else {
          ASSERT_EQ(dirty.y[i], clean.y[i]) << i;
        }
      }
    }
  });
}

TEST(GeluMlp, SameBitsForAnySchedule) {
  on_every_target([] {
    Random random(6);
    const Layer l(333, 19, 37, random);
    for (const bool has_norms : {false, true}) {
      const Forward forward = run_forward(l, true, true, has_norms);
      const Backward backward = run_backward(l, &forward.z, nullptr, true);
      on_every_schedule([&](const ParallelFor& threads) {
        const Forward f = run_forward(l, true, true, has_norms, threads);
        expect_same_bits(f.y, forward.y, "y");
        expect_same_bits(f.z, forward.z, "z");
        expect_same_bits(f.slope, forward.slope, "slope");
        expect_same_bits(f.normed, forward.normed, "normed");
        const Backward b = run_backward(l, &forward.z, nullptr, true, threads);
        expect_same_bits(b.dx, backward.dx, "dx");
        expect_same_bits(b.dz, backward.dz, "dz");
        expect_same_bits(b.hidden, backward.hidden, "hidden");
      });
    }
  });
}

}  // namespace
}  // namespace gelu_mlp_test
}  // namespace elliptical::kernels::test
