// SPDX-License-Identifier: MIT
//
// The quadratic program on the simplex, by its optimality conditions and by solutions known in
// closed form.
#include "elliptical/nn/attention/simplex_qp.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "elliptical/base/random.h"

namespace elliptical::nn {
namespace {

using Vector = std::vector<double>;

/// A Gram matrix of M points in the plane; those from `num_apart` on are all the same.
Vector gram(size_t M, size_t num_apart) {
  RandomStream random(RandomKey(7));
  Vector x, y;
  for (size_t j = 0; j < M; ++j) {
    x.push_back(j < num_apart ? 3.0 * random.uniform() : 1.0);
    y.push_back(j < num_apart ? 3.0 * random.uniform() : 1.0);
  }
  Vector G;
  for (size_t j = 0; j < M; ++j) {
    for (size_t l = 0; l < M; ++l) {
      G.push_back(std::exp(-(x[j] - x[l]) * (x[j] - x[l]) - (y[j] - y[l]) * (y[j] - y[l])));
    }
  }
  return G;
}

Vector scaled_row_means(const Vector& G, size_t M, double beta) {
  Vector q(M, 0.0);
  for (size_t j = 0; j < M; ++j) {
    for (size_t l = 0; l < M; ++l) q[j] += beta * G[j * M + l] / static_cast<double>(M);
  }
  return q;
}

void expect_optimal(const Vector& G, const Vector& q, const Vector& w, double tolerance) {
  const size_t M = q.size();
  Vector g(M);
  for (size_t i = 0; i < M; ++i) {
    for (size_t j = 0; j < M; ++j) g[i] += G[i * M + j] * w[j];
    g[i] -= q[i];
  }
  const double multiplier = std::inner_product(g.begin(), g.end(), w.begin(), 0.0);
  EXPECT_NEAR(std::accumulate(w.begin(), w.end(), 0.0), 1.0, 1e-12);
  for (size_t i = 0; i < M; ++i) {
    EXPECT_GE(w[i], 0.0);
    EXPECT_GE(g[i], multiplier - tolerance) << i;
    if (w[i] > 0.0) {
      EXPECT_LE(g[i], multiplier + tolerance) << i;
    }
  }
}

TEST(ProjectToSimplex, IsTheNearestPoint) {
  EXPECT_EQ(project_to_simplex({0.25, 0.75}), (Vector{0.25, 0.75}));
  EXPECT_EQ(project_to_simplex({5.0, 0.0, -1.0}), (Vector{1.0, 0.0, 0.0}));
  EXPECT_EQ(project_to_simplex({-3.0, -3.0}), (Vector{0.5, 0.5}));
  const Vector p = project_to_simplex({0.5, 0.8, -0.2});  // less 0.15 each, the last one at 0
  EXPECT_NEAR(p[0], 0.35, 1e-15);
  EXPECT_NEAR(p[1], 0.65, 1e-15);
  EXPECT_EQ(p[2], 0.0);
}

TEST(SimplexQp, MeetsTheOptimalityConditions) {
  for (const size_t M : {size_t{1}, size_t{2}, size_t{30}, size_t{100}}) {
    for (const double beta : {1.0, 1.1, 2.0, 10.0}) {
      for (const size_t num_apart : {M, M / 2}) {  // of full rank, and singular
        const Vector G = gram(M, num_apart), q = scaled_row_means(G, M, beta);
        const SimplexQpSolution found = solve_simplex_qp(G, q);
        EXPECT_LE(found.residual, 1e-8) << M << " " << beta << " " << num_apart;
        expect_optimal(G, q, found.weights, 1.1e-8);
      }
    }
  }
}

TEST(SimplexQp, HasWeightsOfZeroAndAllWeightOnOnePoint) {
  // Identity: the projection of q itself.
  const Vector G{1, 0, 0, 0, 1, 0, 0, 0, 1}, q{0.5, 0.8, -0.2};
  const SimplexQpSolution found = solve_simplex_qp(G, q);
  EXPECT_NEAR(found.weights[0], 0.35, 1e-8);
  EXPECT_NEAR(found.weights[1], 0.65, 1e-8);
  EXPECT_EQ(found.weights[2], 0.0);
  EXPECT_EQ(solve_simplex_qp(G, {9.0, 0.0, 0.0}).weights, (Vector{1.0, 0.0, 0.0}));
}

TEST(SimplexQp, EqualWeightsAreTheSolutionWithoutScaling) {
  const Vector G = gram(20, 20);
  const SimplexQpSolution found = solve_simplex_qp(G, scaled_row_means(G, 20, 1.0));
  EXPECT_EQ(found.num_steps, 0);
  EXPECT_EQ(found.weights, Vector(20, 0.05));
}

TEST(SimplexQp, PivotingFindsWhatTheGradientFinds) {
  RandomStream random(RandomKey(11));
  for (int trial = 0; trial < 200; ++trial) {
    const auto M = static_cast<size_t>(1 + 40 * random.uniform());
    Vector A, G(M * M, 0.0), q;
    for (size_t i = 0; i < M * M; ++i) A.push_back(random.uniform());
    for (size_t i = 0; i < M; ++i) {
      q.push_back(3.0 * random.uniform());
      G[i * M + i] = 1.0;  // no eigenvalue below 1: solutions agree where residuals do
      for (size_t j = 0; j < M; ++j) {
        for (size_t l = 0; l < M; ++l) G[i * M + j] += A[i * M + l] * A[j * M + l];
      }
    }
    const SimplexQpSolution pivoted = solve_simplex_qp_by_pivoting(G, q);
    const SimplexQpSolution descended = solve_simplex_qp_by_gradient(G, q);
    ASSERT_LE(pivoted.residual, 1e-8) << M;
    ASSERT_LE(descended.residual, 1e-8) << M;
    expect_optimal(G, q, pivoted.weights, 1.1e-8);
    EXPECT_LE(pivoted.num_steps, 20) << M;
    for (size_t i = 0; i < M; ++i) EXPECT_NEAR(pivoted.weights[i], descended.weights[i], 1e-7);
  }
}

TEST(SimplexQp, PivotingLeavesPaddingOutAndSingularProblemsToTheGradient) {
  const Vector padded{2, 1, 0, 1, 2, 0, 0, 0, 0}, q{2.3, 2.1, 0.0};
  const SimplexQpSolution found = solve_simplex_qp_by_pivoting(padded, q);
  ASSERT_LE(found.residual, 1e-8);  // w0 - w1 = 2.3 - 2.1
  EXPECT_NEAR(found.weights[0], 0.6, 1e-12);
  EXPECT_NEAR(found.weights[1], 0.4, 1e-12);
  EXPECT_EQ(found.weights[2], 0.0);

  const Vector singular = gram(30, 15), target = scaled_row_means(singular, 30, 2.0);
  EXPECT_GT(solve_simplex_qp_by_pivoting(singular, target).residual, 1e-8);
  EXPECT_LE(solve_simplex_qp(singular, target).residual, 1e-8);
  const Vector nothing(4, 0.0);  // no point has a weight of its own: any weights will do
  EXPECT_LE(solve_simplex_qp(nothing, {0.0, 0.0}).residual, 1e-8);
}

TEST(SimplexQp, StopsAfterTheStepsItWasGivenAndSaysHowFarItIs) {
  const Vector G = gram(30, 30), q = scaled_row_means(G, 30, 2.0);
  const SimplexQpSolution found = solve_simplex_qp_by_gradient(G, q, {.max_steps = 3});
  EXPECT_EQ(found.num_steps, 3);
  EXPECT_GT(found.residual, 1e-8);
  EXPECT_GT(solve_simplex_qp_by_pivoting(G, q, {.max_steps = 1}).residual, 1e-8);
}

}  // namespace
}  // namespace elliptical::nn
