// SPDX-License-Identifier: MIT
#include "bench/peak_memory.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

namespace elliptical::bench {
namespace {

constexpr int64_t kMebibyte = 1 << 20;

at::Tensor mebibytes(int64_t count) { return torch::empty({count * kMebibyte}, torch::kUInt8); }

TEST(PeakMemory, IsWhatIsHeldAtOnceNotWhatIsAllocatedInAll) {
  EXPECT_EQ(peak_memory([] {
              mebibytes(3);  // released at once
              const at::Tensor a = mebibytes(2), b = mebibytes(2);
            }),
            4 * kMebibyte);
}

TEST(PeakMemory, LeavesOutWhatWasThereAndForgetsWhatIsLeft) {
  const at::Tensor before = mebibytes(5);
  at::Tensor left;
  EXPECT_EQ(peak_memory([&] { left = mebibytes(1); }), kMebibyte);
  EXPECT_EQ(peak_memory([&] { mebibytes(2); }), 2 * kMebibyte);
  EXPECT_EQ(peak_memory([&] {
              left.reset();  // from before: its release does not count
              mebibytes(3);
            }),
            3 * kMebibyte);
  EXPECT_EQ(peak_memory([] {}), 0);
}

TEST(PeakMemory, SeesBackwardPasses) {
  const at::Tensor x = torch::ones({kMebibyte}).requires_grad_();
  // exp keeps its result; backward holds the gradients of sum (expanded: no memory) and of exp.
  EXPECT_GE(peak_memory([&] { x.exp().sum().backward(); }), 8 * kMebibyte);
}

TEST(GrowthExponent, IsThePowerOfAPowerLaw) {
  const auto points = [](const std::function<int64_t(int64_t)>& bytes) {
    std::vector<MemoryPoint> all;
    for (const int64_t N : {1024, 2048, 4096, 8192}) all.push_back({N, bytes(N)});
    return all;
  };
  EXPECT_NEAR(growth_exponent(points([](int64_t N) { return 12 * N; })), 1.0, 1e-12);
  EXPECT_NEAR(growth_exponent(points([](int64_t N) { return 3 * N * N; })), 2.0, 1e-12);
  EXPECT_NEAR(growth_exponent(points([](int64_t) { return 7; })), 0.0, 1e-12);
}

TEST(GrowthExponent, FitsAllPoints) {
  // Logarithms to the base 2: (0, 0), (1, 0), (2, 3); around their means (1, 1) the products sum
  // to 3, the squares of the first to 2.
  EXPECT_NEAR(growth_exponent({{1, 1}, {2, 1}, {4, 8}}), 1.5, 1e-12);
}

}  // namespace
}  // namespace elliptical::bench
