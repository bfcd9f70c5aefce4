// SPDX-License-Identifier: MIT
//
// Attention as a chain of whole-matrix operations, the way an eager framework composes it: scores,
// softmax over full rows, products, each result rounded to T and long sums cut into blocks. In
// float this is the yardstick for the fused kernel. In double it is a second opinion on the
// library's reference, with which it shares only the rules of visibility and dropout.
#pragma once

#include <map>
#include <string>

#include "tests/kernels/problem.h"

namespace elliptical::kernels::test {

/// Expects finite inputs. row_max and row_sum of the result are not written.
template <class T>
Result<T> run_composite(const Problem<T>& problem);

/// For each tensor of a Result the size of its largest element's rounding error in units of the
/// working precision, were roundings independent: the 2-norm of the terms that are summed, times
/// the condition of the softmax (an absolute error of a score is a relative one of its
/// probability).
std::map<std::string, double> error_scales(const Problem<double>& problem);

/// Fails the running test unless, for each tensor, max |kernel - exact| is at most
///   2 max |composite float - exact| + 4 * 2^-23 * error_scale.
/// The second term keeps a lucky composite (its error can be 0) from failing a sound kernel.
void expect_accurate(const Result<float>& kernel,
                     const Result<float>& composite,
                     const Result<double>& exact,
                     const std::map<std::string, double>& scales,
                     const std::string& what);

/// max |actual - exact|; infinite where one is finite and the other not, or they are different
/// infinities.
template <class T>
double max_error(const std::vector<T>& actual, const std::vector<double>& exact);

}  // namespace elliptical::kernels::test
