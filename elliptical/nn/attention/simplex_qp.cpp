// SPDX-License-Identifier: MIT
#include "elliptical/nn/attention/simplex_qp.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>

namespace elliptical::nn {
namespace {

using Vector = std::vector<double>;

/// G w, as a sum of rows: G is symmetric, and many weights may be 0.
Vector product(const Vector& G, const Vector& w) {
  const size_t M = w.size();
  Vector result(M, 0.0);
  for (size_t j = 0; j < M; ++j) {
    if (w[j] == 0.0) continue;
    const double* row = G.data() + j * M;
    for (size_t i = 0; i < M; ++i) result[i] += w[j] * row[i];
  }
  return result;
}

/// The largest sum of a row: no eigenvalue is larger.
double eigenvalue_bound(const Vector& G, size_t M) {
  double bound = std::numeric_limits<double>::min();
  for (size_t j = 0; j < M; ++j) {
    const auto row = G.begin() + static_cast<std::ptrdiff_t>(j * M);
    bound = std::max(bound, std::accumulate(row, row + static_cast<std::ptrdiff_t>(M), 0.0));
  }
  return bound;
}

double residual_of(const Vector& w, const Vector& Gw, const Vector& q) {
  double smallest = std::numeric_limits<double>::infinity(), largest = -smallest;
  for (size_t i = 0; i < w.size(); ++i) {
    const double g = Gw[i] - q[i];
    smallest = std::min(smallest, g);
    if (w[i] > 0.0) largest = std::max(largest, g);
  }
  return largest - smallest;
}

}  // namespace

std::vector<double> project_to_simplex(const std::vector<double>& x) {
  // The projection is max(x - shift, 0); the shift follows from the numbers that stay positive,
  // which are the largest ones.
  Vector sorted = x;
  std::sort(sorted.begin(), sorted.end(), std::greater<>());
  double sum = 0.0, shift = 0.0;
  for (size_t i = 0; i < sorted.size(); ++i) {
    sum += sorted[i];
    const double candidate = (sum - 1.0) / static_cast<double>(i + 1);
    if (sorted[i] <= candidate) break;
    shift = candidate;
  }
  Vector projected(x.size());
  std::transform(x.begin(), x.end(), projected.begin(),
                 [shift](double value) { return std::max(value - shift, 0.0); });
  return projected;
}

SimplexQpSolution solve_simplex_qp(const std::vector<double>& G,
                                   const std::vector<double>& q,
                                   const SimplexQpOptions& options) {
  const size_t M = q.size();
  const double step = 1.0 / eigenvalue_bound(G, M);
  Vector w(M, 1.0 / static_cast<double>(M)), Gw = product(G, w);
  Vector y = w, Gy = Gw;  // the point that gradients are taken at, ahead of w
  double momentum = 1.0;
  SimplexQpSolution solution;
  solution.residual = residual_of(w, Gw, q);
  while (solution.residual > options.tolerance && solution.num_steps < options.max_steps) {
    Vector target(M);
    for (size_t i = 0; i < M; ++i) target[i] = y[i] - step * (Gy[i] - q[i]);
    const Vector next = project_to_simplex(target), G_next = product(G, next);

    double uphill = 0.0;
    for (size_t i = 0; i < M; ++i) uphill += (y[i] - next[i]) * (next[i] - w[i]);
    const double next_momentum =
        uphill > 0.0 ? 1.0 : 0.5 * (1.0 + std::sqrt(1.0 + 4.0 * momentum * momentum));
    const double ahead = uphill > 0.0 ? 0.0 : (momentum - 1.0) / next_momentum;
    for (size_t i = 0; i < M; ++i) {
      y[i] = next[i] + ahead * (next[i] - w[i]);
      Gy[i] = G_next[i] + ahead * (G_next[i] - Gw[i]);
    }
    momentum = next_momentum;
    w = next;
    Gw = G_next;
    solution.residual = residual_of(w, Gw, q);
    ++solution.num_steps;
  }
  solution.weights = std::move(w);
  return solution;
}

}  // namespace elliptical::nn
