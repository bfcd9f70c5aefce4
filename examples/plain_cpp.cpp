// SPDX-License-Identifier: MIT
//
// Elliptical attention without torch: this program links elliptical_kernels and nothing else. It
// makes a small causal problem with one metric row per head, runs forward and backward on threads
// of its own and compares both with the slow reference in double.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <random>
#include <thread>
#include <vector>

#include "elliptical/kernels/attention.h"
#include "elliptical/kernels/attention_reference.h"
#include "elliptical/kernels/simd.h"

namespace kernels = elliptical::kernels;

namespace {

constexpr kernels::AttentionSizes kSizes{
    .B = 2, .H = 4, .Hk = 4, .N = 61, .M = 61, .D = 24, .Dv = 24};

/// Kernels own no threads: the caller says how tasks are spread. Here: equal slices, one per
/// thread.
void thread_for(int64_t num_tasks, const kernels::TaskRange& body) {
  const int64_t num_threads =
      std::clamp<int64_t>(std::thread::hardware_concurrency(), 1, std::max<int64_t>(num_tasks, 1));
  std::vector<std::jthread> threads;
  for (int64_t t = 0; t < num_threads; ++t) {
    const int64_t begin = num_tasks * t / num_threads;
    const int64_t end = num_tasks * (t + 1) / num_threads;
    if (begin < end) threads.emplace_back(body, begin, end);
  }
}

/// A contiguous (B, H, N, D) array; every array of this problem has that shape but the metric.
template <class T>
kernels::View<T> view(T* data) {
  return {data, kSizes.H * kSizes.N * kSizes.D, kSizes.N * kSizes.D, kSizes.D, 1};
}

/// Inputs, outputs and gradients of one problem, in float (fast kernel) or double (reference).
template <class T>
struct Problem {
  const size_t size = static_cast<size_t>(kSizes.B * kSizes.H * kSizes.N * kSizes.D);
  const size_t rows = static_cast<size_t>(kSizes.B * kSizes.H * kSizes.N);
  std::vector<T> q, k, v, d_o;  // (B, H, N, D)
  std::vector<T> metric;        // (H, D), shared by all batch items and queries
  std::vector<T> o = std::vector<T>(size), dq = o, dk = o, dv = o;
  std::vector<T> row_max = std::vector<T>(rows), row_sum = row_max;

  kernels::AttentionInputs<T> inputs() const {
    return {.sizes = kSizes,
            .q = view(q.data()),
            .k = view(k.data()),
            .v = view(v.data()),
            .metric = {metric.data(), 0, kSizes.D, 0, 1},
            .is_causal = true,
            .scale = 1.0 / std::sqrt(static_cast<double>(kSizes.D))};
  }
  kernels::AttentionOutputs<T> outputs() {
    return {.o = view(o.data()), .row_max = row_max.data(), .row_sum = row_sum.data()};
  }
  kernels::AttentionGradients<T> gradients() {
    return {.o = view<const T>(o.data()),
            .row_max = row_max.data(),
            .row_sum = row_sum.data(),
            .d_o = view<const T>(d_o.data()),
            .dq = view(dq.data()),
            .dk = view(dk.data()),
            .dv = view(dv.data())};
  }
};

template <class To>
std::vector<To> convert(const std::vector<float>& from) {
  return {from.begin(), from.end()};
}

double max_error(const std::vector<float>& fast, const std::vector<double>& exact) {
  double error = 0;
  for (size_t i = 0; i < fast.size(); ++i) error = std::max(error, std::abs(fast[i] - exact[i]));
  return error;
}

}  // namespace

int main() {
  Problem<float> fast;
  std::mt19937 random(0);
  std::normal_distribution<float> normal;
  for (std::vector<float>* x : {&fast.q, &fast.k, &fast.v, &fast.d_o}) {
    x->resize(fast.size);
    for (float& value : *x) value = normal(random);
  }
  fast.metric.resize(static_cast<size_t>(kSizes.H * kSizes.D));
  for (float& value : fast.metric) value = std::uniform_real_distribution<float>(0, 1)(random);

  kernels::attention_forward(fast.inputs(), fast.outputs(), thread_for);
  kernels::attention_backward(fast.inputs(), fast.gradients(), thread_for);

  Problem<double> exact{.q = convert<double>(fast.q),
                        .k = convert<double>(fast.k),
                        .v = convert<double>(fast.v),
                        .d_o = convert<double>(fast.d_o),
                        .metric = convert<double>(fast.metric)};
  kernels::attention_reference_forward(exact.inputs(), exact.outputs());
  kernels::attention_reference_backward(exact.inputs(), exact.gradients());

  // 61 keys and unit-variance data: float rounding stays near 1e-6, so 1e-4 means a wrong formula.
  constexpr double kTolerance = 1e-4;
  std::printf("elliptical attention on %s, largest difference from the reference:\n",
              kernels::simd_target().c_str());
  bool good = true;
  const auto report = [&](const char* name, double error) {
    std::printf("  %-2s %.1e\n", name, error);
    good = good && error < kTolerance;
  };
  report("o", max_error(fast.o, exact.o));
  report("dq", max_error(fast.dq, exact.dq));
  report("dk", max_error(fast.dk, exact.dk));
  report("dv", max_error(fast.dv, exact.dv));
  return good ? 0 : 1;
}
