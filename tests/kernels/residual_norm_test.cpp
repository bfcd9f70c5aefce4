// SPDX-License-Identifier: MIT
//
// The sum with a residual and its layer norm, with every optional argument there and not there,
// against the reference with error bounds; its gradients against differences.
#include "elliptical/kernels/residual_norm.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "elliptical/kernels/residual_norm_reference.h"
#include "tests/kernels/differences.h"
#include "tests/kernels/floats.h"
#include "tests/kernels/layer_sizes.h"
#include "tests/kernels/on_every_target.h"
#include "tests/kernels/threads.h"

namespace elliptical::kernels::test::norm_test {
namespace {

constexpr double kEps = 1e-5;

/// Inputs of a call and which of the optional ones it has.
struct NormCase {
  uint64_t seed;
  Rows size;
  int64_t count;
  ElementDropout dropout;
  bool has_bias, keeps_sum, has_d_sum, wants_dx, wants_weights;
  std::vector<float> factors;  ///< of samples of `rows_per_factor` rows; empty: none
  int64_t rows_per_factor;
  Floats x, bias, residual, weight, norm_bias, dy, d_sum;

  explicit NormCase(uint64_t seed_in) : NormCase(seed_in, Random(seed_in)) {}
  NormCase(uint64_t seed_in, Random random)
      : seed(seed_in),
        size(random_rows(random)),
        count(size.rows * size.C),
        dropout(random_dropout(random)),
        has_bias(random.chance(0.5)),
        keeps_sum(random.chance(0.5)),
        has_d_sum(random.chance(0.5)),
        wants_dx(random.chance(0.7)),
        wants_weights(random.chance(0.7)),
        rows_per_factor(1 + random.below(4)),
        x(Floats::normal(count, random)),
        bias(Floats::normal(size.C, random)),
        residual(Floats::normal(count, random)),
        weight(Floats::normal(size.C, random)),
        norm_bias(Floats::normal(size.C, random)),
        dy(Floats::normal(count, random)),
        d_sum(Floats::normal(count, random)) {
    if (dropout.active() || random.chance(0.5)) return;
    for (int64_t r = 0; r < size.rows; r += rows_per_factor) {
      factors.push_back(random.chance(0.3) ? 0.0f : 1.25f);
    }
  }

  RowFactors row_factors() const {
    return factors.empty() ? RowFactors{} : RowFactors{factors.data(), rows_per_factor};
  }
  std::string describe() const {
    return "case " + std::to_string(seed) + ", rows " + std::to_string(size.rows) + ", C " +
           std::to_string(size.C) + (dropout.active() ? ", dropout" : "") +
           (factors.empty() ? "" : ", factors") + (has_bias ? ", bias" : "") +
           (has_d_sum ? ", d_sum" : "");
  }
};

struct Forward {
  Floats y, normalised, rstd, sum;
};

Forward run_forward(const NormCase& c, const ParallelFor& parallel_for = serial_for) {
  Forward out{Floats(c.count), Floats(c.count), Floats(c.size.rows), Floats(c.count)};
  const NormInputs<float> in{.x = c.x.data(),
                             .bias = c.has_bias ? c.bias.data() : nullptr,
                             .residual = c.residual.data(),
                             .norm = {c.weight.data(), c.norm_bias.data(), kEps},
                             .dropout = c.dropout,
                             .row_factors = c.row_factors(),
                             .sum = c.keeps_sum ? out.sum.data() : nullptr};
  residual_dropout_norm_forward(c.size, in, out.y.data(), out.normalised.data(), out.rstd.data(),
                                parallel_for);
  return out;
}

struct Backward {
  Floats dx, d_residual, d_bias, d_weight, d_norm_bias;
};

Backward run_backward(const NormCase& c,
                      const Forward& forward,
                      const ParallelFor& parallel_for = serial_for) {
  Backward out{Floats(c.count), Floats(c.count), Floats(c.size.C), Floats(c.size.C),
               Floats(c.size.C)};
  residual_dropout_norm_backward(
      c.size,
      {.dy = c.dy.data(),
       .normalised = forward.normalised.data(),
       .rstd = forward.rstd.data(),
       .weight = c.weight.data(),
       .dropout = c.dropout,
       .row_factors = c.row_factors(),
       .d_sum = c.has_d_sum ? c.d_sum.data() : nullptr,
       .dx = c.wants_dx ? out.dx.data() : nullptr,
       .d_residual = out.d_residual.data(),
       .d_bias = c.has_bias ? out.d_bias.data() : nullptr,
       .d_weight = c.wants_weights ? out.d_weight.data() : nullptr,
       .d_norm_bias = c.wants_weights ? out.d_norm_bias.data() : nullptr},
      parallel_for);
  return out;
}

TEST(ResidualDropoutNorm, ForwardMatchesTheReference) {
  on_every_target([] {
    for (uint64_t seed = 0; seed < kLayerCases && !testing::Test::HasFailure(); ++seed) {
      const NormCase c(seed);
      const Forward out = run_forward(c);
      const auto x = c.x.as<Bounded>(), bias = c.bias.as<Bounded>(),
                 residual = c.residual.as<Bounded>(), weight = c.weight.as<Bounded>(),
                 norm_bias = c.norm_bias.as<Bounded>();
      std::vector<Bounded> y(x), normalised(x), sum(x), rstd(static_cast<size_t>(c.size.rows));
      residual_dropout_norm_reference_forward(
          c.size,
          NormInputs<Bounded>{.x = x.data(),
                              .bias = c.has_bias ? bias.data() : nullptr,
                              .residual = residual.data(),
                              .norm = {weight.data(), norm_bias.data(), kEps},
                              .dropout = c.dropout,
                              .row_factors = c.row_factors(),
                              .sum = sum.data()},
          y.data(), normalised.data(), rstd.data());
      const std::string what = c.describe();
      expect_within(out.y, y, what + ": y");
      expect_within(out.normalised, normalised, what + ": normalised");
      expect_within(out.rstd, rstd, what + ": rstd");
      if (c.keeps_sum) expect_within(out.sum, sum, what + ": sum");
    }
  });
}

TEST(ResidualDropoutNorm, BackwardMatchesTheReference) {
  on_every_target([] {
    for (uint64_t seed = 0; seed < kLayerCases && !testing::Test::HasFailure(); ++seed) {
      const NormCase c(seed);
      const Forward forward = run_forward(c);
      const Backward out = run_backward(c, forward);
      const auto dy = c.dy.as<Bounded>(), normalised = forward.normalised.as<Bounded>(),
                 rstd = forward.rstd.as<Bounded>(), weight = c.weight.as<Bounded>(),
                 d_sum = c.d_sum.as<Bounded>();
      std::vector<Bounded> dx(dy), d_residual(dy), d_bias(weight), d_weight(weight),
          d_norm_bias(weight);
      residual_dropout_norm_reference_backward(
          c.size, NormGradients<Bounded>{.dy = dy.data(),
                                         .normalised = normalised.data(),
                                         .rstd = rstd.data(),
                                         .weight = weight.data(),
                                         .dropout = c.dropout,
                                         .row_factors = c.row_factors(),
                                         .d_sum = c.has_d_sum ? d_sum.data() : nullptr,
                                         .dx = dx.data(),
                                         .d_residual = d_residual.data(),
                                         .d_bias = d_bias.data(),
                                         .d_weight = d_weight.data(),
                                         .d_norm_bias = d_norm_bias.data()});
      const std::string what = c.describe();
      expect_within(out.d_residual, d_residual, what + ": d_residual");
      if (c.wants_dx) expect_within(out.dx, dx, what + ": dx");
      if (c.has_bias) expect_within(out.d_bias, d_bias, what + ": d_bias");
      if (c.wants_weights) {
        expect_within(out.d_weight, d_weight, what + ": d_weight");
        expect_within(out.d_norm_bias, d_norm_bias, what + ": d_norm_bias");
      }
    }
  });
}

TEST(ResidualDropoutNorm, NothingKeptIsTheSameNorm) {
  on_every_target([] {
    for (uint64_t seed = 0; seed < kLayerCases / 10; ++seed) {
      const NormCase c(seed);
      const Forward kept = run_forward(c);
      Floats y(c.count);
      const NormInputs<float> in{.x = c.x.data(),
                                 .bias = c.has_bias ? c.bias.data() : nullptr,
                                 .residual = c.residual.data(),
                                 .norm = {c.weight.data(), c.norm_bias.data(), kEps},
                                 .dropout = c.dropout,
                                 .row_factors = c.row_factors()};
      residual_dropout_norm_forward(c.size, in, y.data(), nullptr, nullptr, serial_for);
      expect_same_bits(y, kept.y, c.describe());
    }
  });
}

TEST(ResidualDropoutNorm, ReferenceGradientsMatchDifferences) {
  constexpr Rows size{4, 6};
  constexpr size_t count = 24;
  const float factors[] = {0.0f, 1.25f};
  const ElementDropout none, some(0.3, 5);
  for (const bool has_factors : {false, true}) {
    const RowFactors row_factors = has_factors ? RowFactors{factors, 2} : RowFactors{};
    const ElementDropout& dropout = has_factors ? none : some;
    Random random(2);
    const Inputs in = normal_inputs({count, 6, count, 6, 6}, random);
    std::vector<double> normalised(count), rstd(4);
    const auto forward = [&](const Inputs& at) {
      std::vector<double> out(2 * count);  // y, then s
      residual_dropout_norm_reference_forward(
          size,
          NormInputs<double>{.x = at[0].data(),
                             .bias = at[1].data(),
                             .residual = at[2].data(),
                             .norm = {at[3].data(), at[4].data(), kEps},
                             .dropout = dropout,
                             .row_factors = row_factors,
                             .sum = out.data() + count},
          out.data(), normalised.data(), rstd.data());
      return out;
    };
    forward(in);
    const std::vector<double> above = normal_inputs({2 * count}, random)[0];
    Inputs gradients = in;
    residual_dropout_norm_reference_backward(
        size, NormGradients<double>{.dy = above.data(),
                                    .normalised = normalised.data(),
                                    .rstd = rstd.data(),
                                    .weight = in[3].data(),
                                    .dropout = dropout,
                                    .row_factors = row_factors,
                                    .d_sum = above.data() + count,
                                    .dx = gradients[0].data(),
                                    .d_residual = gradients[2].data(),
                                    .d_bias = gradients[1].data(),
                                    .d_weight = gradients[3].data(),
                                    .d_norm_bias = gradients[4].data()});
    expect_gradients_match_differences(forward, in, above, gradients);
  }
}

TEST(ResidualDropoutNorm, NanStaysInItsRow) {
  on_every_target([] {
    for (uint64_t seed = 0; seed < kLayerCases / 10; ++seed) {
      NormCase c(seed);
      if (c.count == 0) continue;
      c.dropout = {};
      c.factors.clear();
      const Forward clean = run_forward(c);
      const int64_t bad = Random(seed).below(c.count);
      c.x[bad] = std::numeric_limits<float>::quiet_NaN();
      const Forward dirty = run_forward(c);
      for (int64_t i = 0; i < c.count; ++i) {
        if (i / c.size.C == bad / c.size.C) {
          ASSERT_TRUE(std::isnan(dirty.y[i])) << c.describe();
        } else {
          ASSERT_EQ(dirty.y[i], clean.y[i]) << c.describe();
        }
      }
    }
  });
}

TEST(ResidualDropoutNorm, SameBitsForAnySchedule) {
  on_every_target([] {
    NormCase c(0);
    Random random(3);
    c.size = kRowsOfSeveralTasks;
    c.count = c.size.rows * c.size.C;
    c.dropout = ElementDropout(0.3, 9);
    c.factors.clear();
    c.has_bias = c.has_d_sum = c.wants_dx = c.wants_weights = c.keeps_sum = true;
    for (Floats* array : {&c.x, &c.residual, &c.dy, &c.d_sum}) {
      *array = Floats::normal(c.count, random);
    }
    for (Floats* array : {&c.bias, &c.weight, &c.norm_bias}) {
      *array = Floats::normal(c.size.C, random);
    }
    const Forward forward = run_forward(c);
    const Backward backward = run_backward(c, forward);
    on_every_schedule([&](const ParallelFor& threads) {
      const Forward f = run_forward(c, threads);
      expect_same_bits(f.y, forward.y, "y");
      expect_same_bits(f.normalised, forward.normalised, "normalised");
      expect_same_bits(f.rstd, forward.rstd, "rstd");
      expect_same_bits(f.sum, forward.sum, "sum");
      const Backward b = run_backward(c, forward, threads);
      expect_same_bits(b.dx, backward.dx, "dx");
      expect_same_bits(b.d_residual, backward.d_residual, "d_residual");
      expect_same_bits(b.d_bias, backward.d_bias, "d_bias");
      expect_same_bits(b.d_weight, backward.d_weight, "d_weight");
      expect_same_bits(b.d_norm_bias, backward.d_norm_bias, "d_norm_bias");
    });
  });
}

}  // namespace
}  // namespace elliptical::kernels::test::norm_test
