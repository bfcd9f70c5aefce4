// SPDX-License-Identifier: MIT
//
// Memory is O(N): forward and backward take no more than a fixed amount per thread beside their
// inputs, outputs and gradients, however long the sequence. Counted twice: by replaced malloc and
// by the kernel's own record of the process (which also sees memory mapped behind malloc's back).
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <string>
#include <vector>

#include "elliptical/kernels/attention.h"
#include "tests/kernels/allocation_count.h"
#include "tests/kernels/threads.h"

namespace elliptical::kernels::test {
namespace {

constexpr int kThreads = 2;
constexpr size_t kBytesPerThread = size_t{8} << 20;

/// A contiguous (1, heads, tokens, width) array with all pages touched.
class Array {
 public:
  Array(int64_t heads, int64_t tokens, int64_t width, float step)
      : tokens_(tokens), width_(width), values_(static_cast<size_t>(heads * tokens * width)) {
    for (size_t i = 0; i < values_.size(); ++i)
      values_[i] = std::sin(step * static_cast<float>(i % 100003));
  }
  View<float> view() { return {values_.data(), 0, tokens_ * width_, width_, 1}; }
  View<const float> view() const { return {values_.data(), 0, tokens_ * width_, width_, 1}; }

 private:
  int64_t tokens_, width_;
  std::vector<float> values_;
};

/// A line of /proc/self/status in bytes, "VmHWM" being the largest resident size so far.
size_t process_bytes(const std::string& key) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.rfind(key + ":", 0) == 0) return std::stoul(line.substr(key.size() + 1)) * 1024;
  }
  return 0;
}

void check_extra_memory(int64_t tokens) {
  constexpr int64_t heads = 8, width = 64;
  const Array q(heads, tokens, width, 0.1f), k(heads, tokens, width, 0.2f),
      v(heads, tokens, width, 0.3f), metric(heads, 1, width, 0.01f),
      d_o(heads, tokens, width, 0.4f);
  Array o(heads, tokens, width, 0.0f), dq(heads, tokens, width, 0.0f),
      dk(heads, tokens, width, 0.0f), dv(heads, tokens, width, 0.0f),
      d_metric(heads, 1, width, 0.0f);
  std::vector<float> lse(static_cast<size_t>(heads * tokens), 1.0f), row_max(lse), row_sum(lse);

  AttentionInputs<float> in;
  in.sizes = {1, heads, heads, tokens, tokens, width, width};
  in.q = q.view();
  in.k = k.view();
  in.v = v.view();
  in.metric = metric.view();
  in.metric.stride_n = 0;
  in.scale = 0.125;
  AttentionGradients<float> grad;
  grad.o = std::as_const(o).view();
  grad.row_max = row_max.data();
  grad.row_sum = row_sum.data();
  grad.d_o = d_o.view();
  grad.dq = dq.view();
  grad.dk = dk.view();
  grad.dv = dv.view();
  grad.d_metric = d_metric.view();
  grad.d_metric.stride_n = 0;

  std::ofstream("/proc/self/clear_refs") << 5;  // sets VmHWM back to the present size
  const size_t resident = process_bytes("VmRSS");
  const size_t before = allocated_bytes();
  reset_peak();
  attention_forward(in, {o.view(), lse.data(), row_max.data(), row_sum.data()},
                    even_threads(kThreads));
  attention_backward(in, grad, even_threads(kThreads));
  const size_t extra = peak_allocated_bytes() - before;
  const size_t extra_resident = process_bytes("VmHWM") - resident;

  EXPECT_GT(extra, 0u) << "the count does not see the kernel's allocations";
  EXPECT_LT(extra, kThreads * kBytesPerThread);
  EXPECT_LT(extra_resident, kThreads * kBytesPerThread);
  ::testing::Test::RecordProperty("extra_bytes", std::to_string(extra));
  ::testing::Test::RecordProperty("extra_resident_bytes", std::to_string(extra_resident));
}

TEST(AttentionMemory, CountsAllocations) {
  const size_t before = allocated_bytes();
  reset_peak();
  {
    const std::vector<char> block(1 << 20);
  }
  EXPECT_GE(peak_allocated_bytes() - before, size_t{1} << 20);
  EXPECT_LT(allocated_bytes() - before, size_t{1} << 12);
}

TEST(AttentionMemory, ExtraIsBoundedAt4096Tokens) { check_extra_memory(4096); }
TEST(AttentionMemory, SlowExtraIsBoundedAt16384Tokens) { check_extra_memory(16384); }

}  // namespace
}  // namespace elliptical::kernels::test
