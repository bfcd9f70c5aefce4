// SPDX-License-Identifier: MIT
//
// The numbers of an AttentionCase in memory, in float and in double (the same numbers), and the
// three ways to compute with them: the kernel under test, the reference of the library and the
// composite of composite.h.
#pragma once

#include <string>
#include <vector>

#include "elliptical/kernels/attention.h"
#include "tests/kernels/random_case.h"

namespace elliptical::kernels::test {

/// Inputs of forward and backward. Fields may be changed by a test after construction.
template <class T>
struct Problem {
  explicit Problem(const AttentionCase& options);

  AttentionInputs<T> inputs() const;
  /// Number of rows of d_metric: N, or 1 when one metric row serves all queries.
  int64_t metric_rows() const;

  AttentionCase options;
  StridedArray<T> q, k, v, metric, mask_add, d_o;
  StridedArray<bool> mask_keep;
  std::vector<T> d_lse;  ///< empty: none
};

/// Everything forward and backward write.
template <class T>
struct Result {
  explicit Result(const AttentionCase& options);

  AttentionOutputs<T> outputs();
  AttentionGradients<T> gradients(const Problem<T>& problem);

  StridedArray<T> o, dq, dk, dv, d_metric;
  std::vector<T> lse, row_max, row_sum;
};

/// One output of a Result by name, flat, for comparisons.
template <class T>
struct NamedValues {
  std::string name;
  std::vector<T> values;
};
template <class T>
std::vector<NamedValues<T>> tensors(const Result<T>& result);

/// Forward and backward of the kernel under test, on the SIMD target in use.
Result<float> run_kernel(const Problem<float>& problem,
                         const ParallelFor& parallel_for = serial_for);

/// Forward and backward of the library's slow version.
template <class T>
Result<T> run_reference(const Problem<T>& problem);

/// Fails the running test unless both hold the same bits in every tensor (all NaNs count as equal).
void expect_same_bits(const Result<float>& actual,
                      const Result<float>& expected,
                      const std::string& what);

/// Same values, where all NaNs count as equal and 0 differs from -0.
bool same_bits(float a, float b);

}  // namespace elliptical::kernels::test
