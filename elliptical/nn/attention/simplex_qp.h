// SPDX-License-Identifier: MIT
//
// The convex problem behind scaled and projected kernel densities: weights on the simplex,
//
//   min_w  1/2 w^T G w - w^T q   subject to  w >= 0, sum_j w_j = 1
//
// with a symmetric G >= 0 (in both senses: no negative entry, no negative eigenvalue), in double.
// Solved by accelerated projected gradient with restarts: where G is nearly singular w is not
// unique, but G w is, and that converges.
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
  /// How far w is from optimal: with g = G w - q, the largest g_i of those with w_i > 0 less the
  /// smallest of all. 0 exactly at a solution (the conditions of Karush, Kuhn and Tucker).
  double residual = 0.0;
  int64_t num_steps = 0;
};

/// G row by row, q.size()^2 numbers; starts from equal weights, so that the result depends on
/// nothing else.
SimplexQpSolution solve_simplex_qp(const std::vector<double>& G,
                                   const std::vector<double>& q,
                                   const SimplexQpOptions& options = {});

}  // namespace elliptical::nn
