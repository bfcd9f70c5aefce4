// SPDX-License-Identifier: MIT
#include "elliptical/kernels/metric_reference.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

namespace elliptical::kernels {
namespace {

/// s[i] over the tokens [0, count) of one head.
template <class T>
std::vector<T> mean_change(const MetricInputs<T>& in, int64_t b, int64_t h, int64_t count) {
  std::vector<T> s(static_cast<size_t>(in.D), T(0));
  for (int64_t i = 0; i < in.D; ++i) {
    double sum = 0;
    for (int64_t n = 0; n < count; ++n) {
      sum += std::abs(double{in.v.row(b, h, n)[i * in.v.stride_d]} -
                      double{in.v_prev.row(b, h, n)[i * in.v_prev.stride_d]});
    }
    if (count > 0) s[static_cast<size_t>(i)] = static_cast<T>(sum / (count * in.delta));
  }
  return s;
}

template <class T>
void write_scaled(const std::vector<T>& s, MetricScaling scaling, T* row) {
  if (s.empty()) return;
  const T max = *std::max_element(s.begin(), s.end());
  T divisor = 1;
  if (scaling == MetricScaling::kMax) divisor = max;
  if (scaling == MetricScaling::kMean)
    divisor =
        static_cast<T>(std::accumulate(s.begin(), s.end(), 0.0) / static_cast<double>(s.size()));
  for (const T value : s) *row++ = max == 0 ? T(1) : value / divisor;
}

}  // namespace

template <class T>
void metric_reference(const MetricInputs<T>& in, T* metric) {
  const int64_t rows = in.prefix ? in.N : 1;
  for (int64_t b = 0; b < in.B; ++b) {
    const int64_t real = in.lengths ? std::clamp<int64_t>(in.lengths[b], 0, in.N) : in.N;
    for (int64_t h = 0; h < in.H; ++h) {
      for (int64_t t = 0; t < rows; ++t) {
        const int64_t count = in.prefix ? std::min(t + 1, real) : real;
        write_scaled(mean_change(in, b, h, count), in.scaling,
                     metric + ((b * in.H + h) * rows + t) * in.D);
      }
    }
  }
}

template void metric_reference(const MetricInputs<float>&, float*);
template void metric_reference(const MetricInputs<double>&, double*);

}  // namespace elliptical::kernels
