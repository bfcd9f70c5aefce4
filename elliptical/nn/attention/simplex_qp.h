// SPDX-License-Identifier: MIT
//
// The convex problem behind scaled and projected kernel densities: weights on the simplex,
//
//   min_w  1/2 w^T G w - w^T q   subject to  w >= 0, sum_j w_j = 1
//
// with a symmetric G >= 0 (in both senses: no negative entry, no negative eigenvalue), in double.
// w is a solution when a number nu exists with g = G w - q = nu where w > 0 and g >= nu elsewhere
// (the conditions of Karush, Kuhn and Tucker). Two ways lead there:
//
//   block pivoting      guesses where w > 0, solves G w - q = nu, sum w = 1 there, and exchanges
//                       all points that are on the wrong side (Judice and Pires 1994): a handful
//                       of Cholesky factorisations, exact, but G must be well conditioned
//   projected gradient  accelerated, with restarts: hundreds of products with G, always works;
//                       where G is nearly singular w is not unique, but G w is, and that converges
#pragma once

#include <cstdint>
#include <vector>

namespace elliptical::nn {

/// The point of the simplex nearest to x.
std::vector<double> project_to_simplex(const std::vector<double>& x);

struct SimplexQpOptions {
  double tolerance = 1e-8;  ///< of the residual
  int64_t max_steps = 20000;
};

struct SimplexQpSolution {
  std::vector<double> weights;
  /// How far w is from optimal: the largest g_i of those with w_i > 0 less the smallest of all. 0
  /// exactly at a solution.
  double residual = 0.0;
  int64_t num_steps = 0;  ///< factorisations or products with G
};

/// By block pivoting, by projected gradient where there are many points or pivoting leaves a
/// residual above the tolerance. G row by row, q.size()^2 numbers; starts from equal weights, so
/// that the result depends on nothing else.
SimplexQpSolution solve_simplex_qp(const std::vector<double>& G,
                                   const std::vector<double>& q,
                                   const SimplexQpOptions& options = {});

/// By block pivoting alone. The residual is infinite when G is singular or guesses go in circles.
SimplexQpSolution solve_simplex_qp_by_pivoting(const std::vector<double>& G,
                                               const std::vector<double>& q,
                                               const SimplexQpOptions& options = {});

/// By projected gradient alone.
SimplexQpSolution solve_simplex_qp_by_gradient(const std::vector<double>& G,
                                               const std::vector<double>& q,
                                               const SimplexQpOptions& options = {});

}  // namespace elliptical::nn
