// SPDX-License-Identifier: MIT
#include "tests/support/kernel_regression_loops.h"

#include <torch/torch.h>

#include <cmath>

namespace elliptical::support {
namespace {

at::Tensor in_double(const at::Tensor& t) { return t.detach().to(torch::kDouble).contiguous(); }

}  // namespace

at::Tensor KernelLoops::kernels(const at::Tensor& q, const at::Tensor& k) const {
  const int64_t B = q.size(0), H = q.size(1), N = q.size(2), M = k.size(2), D = q.size(3);
  const at::Tensor q_double = in_double(q), k_double = in_double(k);
  const auto q_at = q_double.accessor<double, 4>(), k_at = k_double.accessor<double, 4>();
  at::Tensor result = torch::zeros({B, H, N, M}, torch::kDouble);
  auto result_at = result.accessor<double, 4>();
  for (int64_t b = 0; b < B; ++b) {
    const int64_t length = key_lengths ? (*key_lengths)[b].item<int64_t>() : M;
    for (int64_t h = 0; h < H; ++h) {
      for (int64_t n = 0; n < N; ++n) {
        for (int64_t j = 0; j < length; ++j) {
          if (is_causal && j > n + M - N) continue;
          double norm = 0.0, distance = 0.0;
          for (int64_t i = 0; i < D; ++i) norm += k_at[b][h][j][i] * k_at[b][h][j][i];
          for (int64_t i = 0; i < D; ++i) {
            const double difference = q_at[b][h][n][i] - k_at[b][h][j][i] / std::sqrt(norm);
            const double m = metric ? (*metric)[b][h][n][i].item<double>() : 1.0;
            distance += m * difference * difference;
          }
          result_at[b][h][n][j] = std::exp(-kernel_scale * distance);
        }
      }
    }
  }
  return result;
}

at::Tensor gram_by_loops(const at::Tensor& x, double kernel_scale) {
  const int64_t B = x.size(0), H = x.size(1), M = x.size(2), E = x.size(3);
  const at::Tensor x_double = in_double(x);
  const auto x_at = x_double.accessor<double, 4>();
  at::Tensor result = torch::zeros({B, H, M, M}, torch::kDouble);
  auto result_at = result.accessor<double, 4>();
  for (int64_t b = 0; b < B; ++b) {
    for (int64_t h = 0; h < H; ++h) {
      for (int64_t j = 0; j < M; ++j) {
        for (int64_t l = 0; l < M; ++l) {
          double distance = 0.0;
          for (int64_t i = 0; i < E; ++i) {
            const double difference = x_at[b][h][j][i] - x_at[b][h][l][i];
            distance += difference * difference;
          }
          result_at[b][h][j][l] = std::exp(-kernel_scale * distance);
        }
      }
    }
  }
  return result;
}

at::Tensor regression_by_loops(const at::Tensor& kernels,
                               const at::Tensor& v,
                               const at::Tensor& above,
                               const at::Tensor& below) {
  const at::Tensor v_double = in_double(v), above_double = in_double(above),
                   below_double = in_double(below);
  const auto kernel_at = kernels.accessor<double, 4>(), v_at = v_double.accessor<double, 4>(),
             above_at = above_double.accessor<double, 4>(),
             below_at = below_double.accessor<double, 4>();
  at::Tensor result =
      torch::zeros({v.size(0), v.size(1), kernels.size(2), v.size(3)}, torch::kDouble);
  auto result_at = result.accessor<double, 4>();
  for (int64_t b = 0; b < result.size(0); ++b) {
    for (int64_t h = 0; h < result.size(1); ++h) {
      for (int64_t n = 0; n < result.size(2); ++n) {
        double sum = 0.0;
        for (int64_t j = 0; j < v.size(2); ++j) sum += below_at[b][h][n][j] * kernel_at[b][h][n][j];
        if (sum == 0.0) continue;
        for (int64_t i = 0; i < v.size(3); ++i) {
          double weighted = 0.0;
          for (int64_t j = 0; j < v.size(2); ++j) {
            weighted += above_at[b][h][n][j] * kernel_at[b][h][n][j] * v_at[b][h][j][i];
          }
          result_at[b][h][n][i] = weighted / sum;
        }
      }
    }
  }
  return result;
}

}  // namespace elliptical::support
