// SPDX-License-Identifier: MIT
#include "elliptical/base/available_memory.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "elliptical/base/errors.h"
#include "tests/support/temporary_folder.h"

namespace elliptical {
namespace {

class Memory : public ::testing::Test {
 protected:
  Memory() { unsetenv("ELLIPTICAL_MEMORY"); }
  ~Memory() override { unsetenv("ELLIPTICAL_MEMORY"); }

  void write(const std::string& name, const std::string& text) {
    std::filesystem::create_directories((root_.path() / name).parent_path());
    root_.write(name, text);
  }
  AvailableMemory available() { return available_memory(root_.path()).value(); }

  test::TemporaryFolder root_;
};

TEST_F(Memory, M1OfTheMachineCountsSwap) {
  write("proc/meminfo",
        "MemTotal:       100 kB\nMemAvailable:   4000000 kB\nSwapFree:       1000000 kB\n");
  EXPECT_EQ(available().bytes, 5'000'000 * 1024.0);
  EXPECT_EQ(available().bound, "the machine has 5.1 GB free");
}

TEST_F(Memory, M1OfAControlGroupIsWhatItAndThoseAboveItLeave) {
  write("proc/meminfo", "MemAvailable:   4000000 kB\n");
  write("proc/self/cgroup", "0::/outer/inner\n");
  write("sys/fs/cgroup/outer/inner/memory.max", "max\n");
  write("sys/fs/cgroup/outer/inner/memory.current", "10\n");
  EXPECT_EQ(available().bound, "the machine has 4.1 GB free");
  write("sys/fs/cgroup/outer/memory.max", "3000000\n");
  write("sys/fs/cgroup/outer/memory.current", "2500000\n");
  write("sys/fs/cgroup/outer/memory.stat", "file 90\ninactive_file 100000\n");
  EXPECT_EQ(available().bytes, 600'000.0);
  EXPECT_EQ(available().bound, "the control group leaves 600.0 kB");
  write("proc/self/cgroup", "0::/not/to/be/seen\n");  // a name from outside of a container
  write("sys/fs/cgroup/memory.max", "1000\n");
  write("sys/fs/cgroup/memory.current", "3000\n");
  EXPECT_EQ(available().bytes, 0.0);
}

TEST_F(Memory, M1OfOldControlGroupsIsReadToo) {
  write("proc/self/cgroup", "5:cpu:/\n4:cpuset,memory:/a\n0::/\n");
  write("sys/fs/cgroup/memory/a/memory.limit_in_bytes", "5000\n");
  write("sys/fs/cgroup/memory/a/memory.usage_in_bytes", "2000\n");
  EXPECT_EQ(available().bytes, 3000.0);
}

TEST_F(Memory, M1TheVariableIsHeldAgainstInsteadOrNothingIs) {
  write("proc/meminfo", "MemAvailable:   4000000 kB\n");
  for (const auto& [text, bytes] :
       {std::pair("1500", 1500.0), std::pair("2K", 2e3), std::pair("0.5M", 5e5),
        std::pair("64G", 64e9), std::pair("1T", 1e12)}) {
    setenv("ELLIPTICAL_MEMORY", text, 1);
    EXPECT_EQ(available().bytes, bytes) << text;
  }
  EXPECT_EQ(available().bound, "ELLIPTICAL_MEMORY allows 1.0 TB");
  setenv("ELLIPTICAL_MEMORY", "none", 1);
  EXPECT_FALSE(available_memory(root_.path()).has_value());
  EXPECT_NO_THROW(require_memory(1e300, "training", "less"));
  for (const char* wrong : {"lots", "1X", "-3G", "nan", "G"}) {
    setenv("ELLIPTICAL_MEMORY", wrong, 1);
    try {
      available_memory(root_.path());
      ADD_FAILURE() << wrong;
    } catch (const UsageError& error) {
      EXPECT_EQ(std::string(error.what()),
                "ELLIPTICAL_MEMORY: must be a number of bytes, 16G for instance, or none, got \"" +
                    std::string(wrong) + "\"");
    }
  }
}

TEST_F(Memory, M1WhatCanNotFitIsRefusedWithTheNumberAndAdvice) {
  setenv("ELLIPTICAL_MEMORY", "2G", 1);
  EXPECT_NO_THROW(require_memory(2e9, "training", "less"));
  try {
    require_memory(3.21e12, "training", "a smaller batch");
    ADD_FAILURE();
  } catch (const MemoryError& error) {
    EXPECT_STREQ(error.what(),
                 "training: needs about 3.2 TB of memory, ELLIPTICAL_MEMORY allows 2.0 GB (a "
                 "smaller batch; ELLIPTICAL_MEMORY=none tries all the same)");
    EXPECT_EQ(exit_status(error), 1);
  }
  EXPECT_EQ(allocation_failure_text(4096),
            "memory: 4.1 kB more were asked for and could not be had, ELLIPTICAL_MEMORY allows 2.0 "
            "GB (smaller batches, windows or models; fewer --jobs; close other programs)");
  EXPECT_TRUE(allocation_failure_text(0).starts_with(
      "memory: more was asked for than could be had, ELLIPTICAL_MEMORY allows"));
}

TEST(BytesText, HasAUnitAndOneDigit) {
  EXPECT_EQ(bytes_text(12), "12 bytes");
  EXPECT_EQ(bytes_text(999'999), "1.0 MB");
  EXPECT_EQ(bytes_text(5.25e9), "5.2 GB");
}

}  // namespace
}  // namespace elliptical
