// SPDX-License-Identifier: MIT
#include "tests/kernels/problem.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

#include "elliptical/kernels/attention_reference.h"

namespace elliptical::kernels::test {
namespace {

// Each array draws from a stream of its own, so that an option changes no other array's numbers.
enum Stream : uint64_t {
  kQ = 1,
  kK,
  kV,
  kMetric,
  kMaskAdd,
  kMaskKeep,
  kGradO,
  kGradLse,
  kOutO,
  kOutQ,
  kOutK,
  kOutV,
  kOutM
};

Random stream(const AttentionCase& options, Stream which) {
  return Random(options.seed * 0x2545F4914F6CDD1Du + which);
}

template <class T, class Draw>
StridedArray<T> input_array(const AttentionCase& options,
                            Stream which,
                            const Sizes4& sizes,
                            std::array<bool, 4> expanded,
                            Draw draw) {
  Random random = stream(options, which);
  Layout layout;
  layout.expanded = expanded;
  if (!options.plain_memory) layout = random_input_layout(random, expanded);
  StridedArray<T> array(sizes, layout);
  // Every value is a float, so that float and double problems hold the same numbers.
  array.for_each([&](int64_t b, int64_t h, int64_t n, int64_t d) {
    array.at(b, h, n, d) = static_cast<T>(static_cast<float>(draw(random)));
  });
  return array;
}

/// Stride 0 over batch items or heads, now and then.
std::array<bool, 4> sometimes_expanded(const AttentionCase& options, Stream which) {
  Random random = stream(options, static_cast<Stream>(which + 100));
  if (options.plain_memory) return {};
  return {random.chance(0.1), random.chance(0.1), false, false};
}

template <class T>
StridedArray<T> output_array(const AttentionCase& options, Stream which, const Sizes4& sizes) {
  Random random = stream(options, which);
  return StridedArray<T>(sizes, options.plain_memory ? Layout{} : random_output_layout(random));
}

}  // namespace

template <class T>
Problem<T>::Problem(const AttentionCase& options_in) : options(options_in) {
  const auto& [B, H, Hk, N, M, D, Dv] = options.sizes;
  const auto normal = [](Random& random) { return random.normal(); };
  const auto spread = [&](Random& random) { return options.spread * random.normal(); };
  q = input_array<T>(options, kQ, {B, H, N, D}, sometimes_expanded(options, kQ), spread);
  k = input_array<T>(options, kK, {B, Hk, M, D}, sometimes_expanded(options, kK), spread);
  v = input_array<T>(options, kV, {B, Hk, M, Dv}, sometimes_expanded(options, kV), normal);
  d_o = input_array<T>(options, kGradO, {B, H, N, Dv}, sometimes_expanded(options, kGradO), normal);

  if (!options.metric.empty()) {
    metric =
        input_array<T>(options, kMetric, {B, H, N, D}, bench::broadcast_axes(options.metric),
                       [](Random& random) { return random.chance(0.05) ? 0.0 : random.uniform(); });
  }
  if (!options.mask_add.empty()) {
    mask_add = input_array<T>(
        options, kMaskAdd, {B, H, N, M}, bench::broadcast_axes(options.mask_add),
        [](Random& random) {
          return random.chance(0.15) ? -std::numeric_limits<double>::infinity() : random.normal();
        });
  }
  if (!options.mask_keep.empty()) {
    mask_keep = input_array<bool>(options, kMaskKeep, {B, H, N, M},
                                  bench::broadcast_axes(options.mask_keep),
                                  [](Random& random) { return random.chance(0.75); });
  }
  if (options.has_d_lse) {
    Random random = stream(options, kGradLse);
    d_lse.resize(static_cast<size_t>(B * H * N));
    for (T& value : d_lse) value = static_cast<T>(static_cast<float>(random.normal()));
  }
}

template <class T>
AttentionInputs<T> Problem<T>::inputs() const {
  AttentionInputs<T> in;
  in.sizes = options.sizes;
  in.q = q.view();
  in.k = k.view();
  in.v = v.view();
  in.metric = metric.view();
  in.mask_add = mask_add.view();
  in.mask_keep = mask_keep.view();
  in.key_lengths = options.key_lengths.empty() ? nullptr : options.key_lengths.data();
  in.is_causal = options.is_causal;
  in.scale = options.logit_scale();
  in.dropout_p = options.dropout_p;
  in.dropout_seed = options.seed;
  return in;
}

template <class T>
int64_t Problem<T>::metric_rows() const {
  return metric.view().stride_n != 0 ? options.sizes.N : 1;
}

template <class T>
Result<T>::Result(const AttentionCase& options) {
  const auto& [B, H, Hk, N, M, D, Dv] = options.sizes;
  o = output_array<T>(options, kOutO, {B, H, N, Dv});
  dq = output_array<T>(options, kOutQ, {B, H, N, D});
  dk = output_array<T>(options, kOutK, {B, Hk, M, D});
  dv = output_array<T>(options, kOutV, {B, Hk, M, Dv});
  if (options.has_metric_row()) {
    d_metric = StridedArray<T>({B, H, 1, D}, Layout{.expanded = {false, false, true, false}});
  } else if (!options.metric.empty()) {
    d_metric = output_array<T>(options, kOutM, {B, H, N, D});
  }
  const T poison = std::numeric_limits<T>::quiet_NaN();
  for (std::vector<T>* rows : {&lse, &row_max, &row_sum})
    rows->assign(static_cast<size_t>(B * H * N), poison);
}

template <class T>
AttentionOutputs<T> Result<T>::outputs() {
  return {o.view(), lse.data(), row_max.data(), row_sum.data()};
}

template <class T>
AttentionGradients<T> Result<T>::gradients(const Problem<T>& problem) {
  AttentionGradients<T> grad;
  grad.o = std::as_const(o).view();
  grad.row_max = row_max.data();
  grad.row_sum = row_sum.data();
  grad.d_o = problem.d_o.view();
  grad.d_lse = problem.d_lse.empty() ? nullptr : problem.d_lse.data();
  grad.dq = dq.view();
  grad.dk = dk.view();
  grad.dv = dv.view();
  grad.d_metric = d_metric.view();
  return grad;
}

template <class T>
std::vector<NamedValues<T>> tensors(const Result<T>& result) {
  std::vector<NamedValues<T>> all = {{"o", result.o.values()},
                                     {"lse", result.lse},
                                     {"dq", result.dq.values()},
                                     {"dk", result.dk.values()},
                                     {"dv", result.dv.values()}};
  if (result.d_metric) all.push_back({"d_metric", result.d_metric.values()});
  return all;
}

Result<float> run_kernel(const Problem<float>& problem, const ParallelFor& parallel_for) {
  Result<float> result(problem.options);
  const AttentionInputs<float> in = problem.inputs();
  attention_forward(in, result.outputs(), parallel_for);
  attention_backward(in, result.gradients(problem), parallel_for);
  return result;
}

template <class T>
Result<T> run_reference(const Problem<T>& problem) {
  Result<T> result(problem.options);
  const AttentionInputs<T> in = problem.inputs();
  attention_reference_forward(in, result.outputs());
  attention_reference_backward(in, result.gradients(problem));
  return result;
}

bool same_bits(float a, float b) {
  return (std::isnan(a) && std::isnan(b)) ||
         std::bit_cast<uint32_t>(a) == std::bit_cast<uint32_t>(b);
}

void expect_same_bits(const Result<float>& actual,
                      const Result<float>& expected,
                      const std::string& what) {
  const auto actual_tensors = tensors(actual);
  const auto expected_tensors = tensors(expected);
  ASSERT_EQ(actual_tensors.size(), expected_tensors.size()) << what;
  for (size_t t = 0; t < actual_tensors.size(); ++t) {
    const auto& [name, values] = actual_tensors[t];
    ASSERT_EQ(values.size(), expected_tensors[t].values.size()) << name << ", " << what;
    for (size_t i = 0; i < values.size(); ++i) {
      ASSERT_TRUE(same_bits(values[i], expected_tensors[t].values[i]))
          << name << "[" << i << "] is " << values[i] << ", expected "
          << expected_tensors[t].values[i] << " bit for bit; " << what;
    }
  }
}

template struct Problem<float>;
template struct Problem<double>;
template struct Result<float>;
template struct Result<double>;
template std::vector<NamedValues<float>> tensors(const Result<float>&);
template std::vector<NamedValues<double>> tensors(const Result<double>&);
template Result<float> run_reference(const Problem<float>&);
template Result<double> run_reference(const Problem<double>&);

}  // namespace elliptical::kernels::test
