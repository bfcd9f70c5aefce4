// SPDX-License-Identifier: MIT
//
// Sizes of zero, rows without a visible key, packed arrays, and offsets beyond 32 bits.
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <array>
#include <limits>
#include <string>
#include <type_traits>
#include <vector>

#include "tests/kernels/problem.h"
#include "tests/kernels/targets.h"

namespace elliptical::kernels::test {
namespace {

constexpr float kMinusInf = -std::numeric_limits<float>::infinity();

AttentionCase base_case(const AttentionSizes& sizes) {
  AttentionCase options;
  options.seed = 11;
  options.sizes = sizes;
  options.scale = 0.5;
  options.metric = "BH1D";
  options.plain_memory = true;
  return options;
}

/// Every element of every tensor has to be what a problem without any visible key gives.
void expect_nothing_attended(const Result<float>& result, const std::string& what) {
  for (const auto& [name, values] : tensors(result)) {
    const float expected = name == "lse" ? kMinusInf : 0.0f;
    for (const float value : values) ASSERT_EQ(value, expected) << name << ", " << what;
  }
}

TEST(AttentionEdges, K2_ZeroSizes) {
  const AttentionSizes base = {2, 4, 2, 9, 17, 8, 5};
  for (int64_t AttentionSizes::* size :
       {&AttentionSizes::B, &AttentionSizes::H, &AttentionSizes::N, &AttentionSizes::M}) {
    AttentionSizes sizes = base;
    sizes.*size = 0;
    for (const char* metric : {"", "BH1D", "BHND"}) {
      AttentionCase options = base_case(sizes);
      options.metric = metric;
      for (const std::string& target : targets_under_test()) {
        const ForcedTarget forced(target);
        expect_nothing_attended(run_kernel(Problem<float>(options)), options.describe());
      }
    }
  }
}

TEST(AttentionEdges, K1_FullyMaskedProblems) {
  const AttentionSizes sizes = {2, 4, 2, 33, 33, 8, 5};
  for (const char* metric : {"", "BH1D", "BHND"}) {
    AttentionCase options = base_case(sizes);
    options.metric = metric;

    AttentionCase by_length = options;
    by_length.key_lengths = {0, 0};
    AttentionCase by_keep = options;
    by_keep.mask_keep = "BHNM";
    Problem<float> keep_problem(by_keep);
    keep_problem.mask_keep.for_each([&](int64_t b, int64_t h, int64_t n, int64_t j) {
      keep_problem.mask_keep.at(b, h, n, j) = false;
    });
    AttentionCase by_add = options;
    by_add.mask_add = "BHNM";
    Problem<float> add_problem(by_add);
    add_problem.mask_add.for_each([&](int64_t b, int64_t h, int64_t n, int64_t j) {
      add_problem.mask_add.at(b, h, n, j) = kMinusInf;
    });
    for (const std::string& target : targets_under_test()) {
      const ForcedTarget forced(target);
      expect_nothing_attended(run_kernel(Problem<float>(by_length)), target + ", by length");
      expect_nothing_attended(run_kernel(keep_problem), target + ", by boolean mask");
      expect_nothing_attended(run_kernel(add_problem), target + ", by additive mask");
    }
  }
}

TEST(AttentionEdges, K1_CausalRowsBeforeTheFirstKey) {
  // N > M: the first N - M queries see nothing.
  AttentionCase options = base_case({1, 2, 1, 40, 7, 8, 8});
  options.is_causal = true;
  options.metric = "BHND";
  const int64_t blind = options.sizes.N - options.sizes.M;
  for (const std::string& target : targets_under_test()) {
    const ForcedTarget forced(target);
    const Result<float> result = run_kernel(Problem<float>(options));
    for (int64_t h = 0; h < options.sizes.H; ++h) {
      for (int64_t n = 0; n < options.sizes.N; ++n) {
        const float lse = result.lse[h * options.sizes.N + n];
        EXPECT_EQ(lse == kMinusInf, n < blind) << target << " n=" << n;
        for (int64_t i = 0; i < options.sizes.D && n < blind; ++i) {
          EXPECT_EQ(result.o.at(0, h, n, i), 0.0f);
          EXPECT_EQ(result.dq.at(0, h, n, i), 0.0f);
          EXPECT_EQ(result.d_metric.at(0, h, n, i), 0.0f);
        }
      }
    }
  }
}

TEST(AttentionEdges, NullOptionalOutputs) {
  const Problem<float> problem(base_case({1, 2, 1, 9, 17, 8, 8}));
  for (const std::string& target : targets_under_test()) {
    const ForcedTarget forced(target);
    const Result<float> expected = run_kernel(problem);
    Result<float> result(problem.options);
    attention_forward(problem.inputs(), {result.o.view()}, serial_for);
    EXPECT_EQ(result.o.values(), expected.o.values());

    attention_forward(problem.inputs(), result.outputs(), serial_for);
    AttentionGradients<float> gradients = result.gradients(problem);
    gradients.d_metric = {};
    attention_backward(problem.inputs(), gradients, serial_for);
    EXPECT_EQ(result.dq.values(), expected.dq.values());
    EXPECT_EQ(result.dk.values(), expected.dk.values());
    EXPECT_EQ(result.dv.values(), expected.dv.values());
  }
}

TEST(AttentionEdges, K3_QueriesKeysAndValuesInOneArray) {
  // The output of one projection, (B, N, 3, H, D), read and its gradient written in place of
  // copies; and q, k, v being one and the same array.
  AttentionCase options = base_case({2, 3, 3, 21, 21, 8, 8});
  const auto& [B, H, Hk, N, M, D, Dv] = options.sizes;
  const Problem<float> apart(options);
  std::vector<float> packed(static_cast<size_t>(B * N * 3 * H * D)), gradient(packed.size());
  const auto part = [&](auto* data, int64_t which) {
    return View<std::remove_pointer_t<decltype(data)>>{data + which * H * D, N * 3 * H * D, D,
                                                       3 * H * D, 1};
  };
  apart.q.for_each([&](int64_t b, int64_t h, int64_t n, int64_t i) {
    part(packed.data(), 0).row(b, h, n)[i] = apart.q.at(b, h, n, i);
    part(packed.data(), 1).row(b, h, n)[i] = apart.k.at(b, h, n, i);
    part(packed.data(), 2).row(b, h, n)[i] = apart.v.at(b, h, n, i);
  });
  for (const std::string& target : targets_under_test()) {
    const ForcedTarget forced(target);
    AttentionInputs<float> in = apart.inputs();
    const float* data = packed.data();
    in.q = part(data, 0);
    in.k = part(data, 1);
    in.v = part(data, 2);
    Result<float> result(options);
    attention_forward(in, result.outputs(), serial_for);
    AttentionGradients<float> gradients = result.gradients(apart);
    gradients.dq = part(gradient.data(), 0);
    gradients.dk = part(gradient.data(), 1);
    gradients.dv = part(gradient.data(), 2);
    attention_backward(in, gradients, serial_for);
    result.dq.for_each([&](int64_t b, int64_t h, int64_t n, int64_t i) {
      result.dq.at(b, h, n, i) = gradients.dq.row(b, h, n)[i];
      result.dk.at(b, h, n, i) = gradients.dk.row(b, h, n)[i];
      result.dv.at(b, h, n, i) = gradients.dv.row(b, h, n)[i];
    });
    expect_same_bits(result, run_kernel(apart), target + ", packed");

    in.k = in.v = in.q;
    Problem<float> same(options);
    same.q.for_each([&](int64_t b, int64_t h, int64_t n, int64_t i) {
      same.k.at(b, h, n, i) = same.v.at(b, h, n, i) = same.q.at(b, h, n, i);
    });
    Result<float> alias(options);
    attention_forward(in, alias.outputs(), serial_for);
    attention_backward(in, alias.gradients(same), serial_for);
    expect_same_bits(alias, run_kernel(same), target + ", one array");
  }
}

/// Address space without memory behind it until a page is touched.
class SparseFloats {
 public:
  explicit SparseFloats(size_t count) : bytes_(count * sizeof(float)) {
    void* address = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    data_ = address == MAP_FAILED ? nullptr : static_cast<float*>(address);
  }
  ~SparseFloats() {
    if (data_) munmap(data_, bytes_);
  }
  SparseFloats(const SparseFloats&) = delete;
  SparseFloats& operator=(const SparseFloats&) = delete;
  float* data() { return data_; }

 private:
  size_t bytes_;
  float* data_;
};

TEST(AttentionEdges, K5_OffsetsBeyond32Bits) {
  // One stride at a time (b, h, n, and the key stride of the mask) exceeds 2^31 elements.
  AttentionCase options = base_case({2, 2, 2, 2, 2, 8, 8});
  options.mask_add = "BHNM";
  const Problem<float> near(options);
  const int64_t far = (int64_t{1} << 31) + 4096;
  SparseFloats space(static_cast<size_t>(far + (1 << 20)));
  if (!space.data()) GTEST_SKIP() << "the system grants no 8 GiB of address space";

  for (int axis = 0; axis < 4; ++axis) {
    int64_t used = 0;
    const auto place = [&](const Sizes4& sizes, bool is_mask) {
      std::array<int64_t, 4> strides = {sizes[1] * sizes[2] * sizes[3], sizes[2] * sizes[3],
                                        sizes[3], 1};
      if (axis < 3 || is_mask) strides[axis] = far;
      float* data = space.data() + used;
      used += 4096 / 8;  // far from the others, near enough to share the far page range
      return View<float>{data, strides[0], strides[1], strides[2], strides[3]};
    };
    const auto copy = [&](const StridedArray<float>& from, bool is_mask) -> View<const float> {
      const View<float> to = place(from.sizes(), is_mask);
      from.for_each([&](int64_t b, int64_t h, int64_t n, int64_t i) {
        to.row(b, h, n)[i * to.stride_d] = from.at(b, h, n, i);
      });
      return {to.data, to.stride_b, to.stride_h, to.stride_n, to.stride_d};
    };
    AttentionInputs<float> in = near.inputs();
    in.q = copy(near.q, false);
    in.k = copy(near.k, false);
    in.v = copy(near.v, false);
    in.mask_add = copy(near.mask_add, true);
    for (const std::string& target : targets_under_test()) {
      const ForcedTarget forced(target);
      Result<float> result(options);
      AttentionOutputs<float> out = result.outputs();
      out.o = place(result.o.sizes(), false);
      attention_forward(in, out, serial_for);
      AttentionGradients<float> gradients = result.gradients(near);
      gradients.o = {out.o.data, out.o.stride_b, out.o.stride_h, out.o.stride_n, out.o.stride_d};
      gradients.dq = place(result.dq.sizes(), false);
      gradients.dk = place(result.dk.sizes(), false);
      gradients.dv = place(result.dv.sizes(), false);
      attention_backward(in, gradients, serial_for);
      result.o.for_each([&](int64_t b, int64_t h, int64_t n, int64_t i) {
        result.o.at(b, h, n, i) = out.o.row(b, h, n)[i];
        result.dq.at(b, h, n, i) = gradients.dq.row(b, h, n)[i];
        result.dk.at(b, h, n, i) = gradients.dk.row(b, h, n)[i];
        result.dv.at(b, h, n, i) = gradients.dv.row(b, h, n)[i];
      });
      expect_same_bits(result, run_kernel(near), target + ", axis " + std::to_string(axis));
    }
  }
}

}  // namespace
}  // namespace elliptical::kernels::test
