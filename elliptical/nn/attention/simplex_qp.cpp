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

/// Equal weights, and how far they are from optimal.
SimplexQpSolution equal_weights(const Vector& G, const Vector& q) {
  SimplexQpSolution start{.weights = Vector(q.size(), 1.0 / static_cast<double>(q.size()))};
  start.residual = residual_of(start.weights, product(G, start.weights), q);
  return start;
}

/// A pivot that lost so much of its diagonal element to rounding says nothing any more.
constexpr double kSmallestPivotRatio = 1e-12;
/// So many exchanges of all wrong points may pass without fewer of them before points are
/// exchanged one by one.
constexpr int64_t kPatience = 4;
constexpr int64_t kMostExchanges = 200;
/// A factorisation is M^3 / 6 multiplications, a gradient M^2: with more points than this, some
/// hundred gradients cost less than a handful of factorisations.
constexpr size_t kMostPivotedPoints = 512;

/// The upper factor U, G = U^T U, of the rows and columns of G in `support`; empty when they are
/// singular.
Vector cholesky(const Vector& G, const std::vector<size_t>& support, size_t M) {
  const size_t S = support.size();
  Vector U(S * S);
  for (size_t i = 0; i < S; ++i) {
    for (size_t j = i; j < S; ++j) U[i * S + j] = G[support[i] * M + support[j]];
  }
  for (size_t k = 0; k < S; ++k) {
    const double diagonal = G[support[k] * M + support[k]];
    double* row = U.data() + k * S;
    if (!(row[k] > kSmallestPivotRatio * diagonal)) return {};
    const double inverse_root = 1.0 / std::sqrt(row[k]);
    for (size_t j = k; j < S; ++j) row[j] *= inverse_root;
    for (size_t i = k + 1; i < S; ++i) {
      double* below = U.data() + i * S;
      for (size_t j = i; j < S; ++j) below[j] -= row[i] * row[j];
    }
  }
  return U;
}

/// x with U^T U x = b.
Vector solve_factored(const Vector& U, Vector x) {
  const size_t S = x.size();
  for (size_t i = 0; i < S; ++i) {  // U^T y = b
    x[i] /= U[i * S + i];
    for (size_t j = i + 1; j < S; ++j) x[j] -= U[i * S + j] * x[i];
  }
  for (size_t i = S; i-- > 0;) {  // U x = y
    for (size_t j = i + 1; j < S; ++j) x[i] -= U[i * S + j] * x[j];
    x[i] /= U[i * S + i];
  }
  return x;
}

/// The minimum over weights on `support` alone, which may be negative; empty when singular.
Vector minimum_on(const Vector& G, const Vector& q, const std::vector<size_t>& support) {
  const size_t M = q.size();
  const Vector U = cholesky(G, support, M);
  if (U.empty()) return {};
  Vector q_here;
  for (const size_t i : support) q_here.push_back(q[i]);
  const Vector a = solve_factored(U, q_here), b = solve_factored(U, Vector(support.size(), 1.0));
  const double sum_a = std::accumulate(a.begin(), a.end(), 0.0),
               sum_b = std::accumulate(b.begin(), b.end(), 0.0);
  const double nu = (1.0 - sum_a) / sum_b;  // w = a + nu b adds up to 1
  Vector w(M, 0.0);
  for (size_t s = 0; s < support.size(); ++s) w[support[s]] = a[s] + nu * b[s];
  return w;
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
  if (q.size() <= kMostPivotedPoints) {
    SimplexQpSolution solution = solve_simplex_qp_by_pivoting(G, q, options);
    if (solution.residual <= options.tolerance) return solution;
  }
  return solve_simplex_qp_by_gradient(G, q, options);
}

SimplexQpSolution solve_simplex_qp_by_pivoting(const std::vector<double>& G,
                                               const std::vector<double>& q,
                                               const SimplexQpOptions& options) {
  const size_t M = q.size();
  SimplexQpSolution solution = equal_weights(G, q);
  if (solution.residual <= options.tolerance) return solution;
  solution.residual = std::numeric_limits<double>::infinity();
  std::vector<bool> is_inside(M);  // the guess where w > 0; padding has rows of zeros
  for (size_t i = 0; i < M; ++i) is_inside[i] = G[i * M + i] > 0.0;
  size_t fewest = M + 1;  // wrong points, of all guesses so far
  int64_t patience = kPatience;
  for (; solution.num_steps < std::min(kMostExchanges, options.max_steps); ++solution.num_steps) {
    std::vector<size_t> support;
    for (size_t i = 0; i < M; ++i) {
      if (is_inside[i]) support.push_back(i);
    }
    Vector w = minimum_on(G, q, support);
    if (w.empty()) return solution;  // singular, or no point at all
    const Vector Gw = product(G, w);
    const double nu = Gw[support.front()] - q[support.front()];
    std::vector<size_t> wrong;
    for (size_t i = 0; i < M; ++i) {
      const bool is_wrong = is_inside[i] ? w[i] < 0.0 : Gw[i] - q[i] < nu - 0.5 * options.tolerance;
      if (is_wrong) wrong.push_back(i);
    }
    if (wrong.empty()) {
      solution.residual = residual_of(w, Gw, q);
      solution.weights = std::move(w);
      return solution;
    }
    // Exchanging all at once is fast; one by one, the last first, ends for certain.
    patience = wrong.size() < fewest ? kPatience : patience - 1;
    fewest = std::min(fewest, wrong.size());
    if (patience < 0) wrong.erase(wrong.begin(), wrong.end() - 1);
    for (const size_t i : wrong) is_inside[i] = !is_inside[i];
  }
  return solution;
}

SimplexQpSolution solve_simplex_qp_by_gradient(const std::vector<double>& G,
                                               const std::vector<double>& q,
                                               const SimplexQpOptions& options) {
  const size_t M = q.size();
  const double step = 1.0 / eigenvalue_bound(G, M);
  SimplexQpSolution solution = equal_weights(G, q);
  Vector w = solution.weights, Gw = product(G, w);
  Vector y = w, Gy = Gw;  // the point that gradients are taken at, ahead of w
  double momentum = 1.0;
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
