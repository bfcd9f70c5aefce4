// SPDX-License-Identifier: MIT
//
// Forward and backward through torch allocate no N x M buffer: at any moment no more than outputs,
// gradients and a fixed amount per thread beside what was there before. Every allocation is
// counted: torch's CPU allocator ends in posix_memalign, which this program replaces.
#include <ATen/Parallel.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "elliptical/ops/attention.h"
#include "tests/kernels/allocation_count.h"

namespace elliptical {
namespace {

using kernels::test::allocated_bytes;
using kernels::test::peak_allocated_bytes;
using kernels::test::reset_peak;

void check_peak(int64_t N) {
  constexpr int64_t B = 1, H = 8, D = 64;
  constexpr size_t kPerThread = size_t{8} << 20;
  const auto leaf = [&](at::IntArrayRef sizes) { return torch::rand(sizes).requires_grad_(); };
  const at::Tensor q = leaf({B, H, N, D}), k = leaf({B, H, N, D}), v = leaf({B, H, N, D}),
                   m = leaf({B, H, 1, D}), d_out = torch::rand({B, H, N, D});

  const size_t before = allocated_bytes();
  reset_peak();
  const at::Tensor out = ops::attention(q, k, v, m);
  const auto gradients = torch::autograd::grad({out}, {q, k, v, m}, {d_out});
  const size_t peak = peak_allocated_bytes() - before;

  const size_t tensor = sizeof(float) * B * H * N * D;
  const size_t rows = 3 * sizeof(float) * B * H * N;  // lse, maximum and sum
  const auto threads = static_cast<size_t>(at::get_num_threads());
  EXPECT_GE(peak, 4 * tensor) << "the count does not see torch's allocations";
  EXPECT_LT(peak, 4 * tensor + rows + threads * kPerThread);
  ::testing::Test::RecordProperty("peak_bytes", std::to_string(peak));
}

TEST(AttentionMemory, IsLinearAt2048Tokens) { check_peak(2048); }
TEST(AttentionMemory, SlowIsLinearAt16384Tokens) { check_peak(16384); }

}  // namespace
}  // namespace elliptical
