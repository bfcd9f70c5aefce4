// SPDX-License-Identifier: MIT
//
// Choosing the SIMD target: by default, by `simd_use`, by the environment, and with a wrong name.
#include "elliptical/kernels/simd.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string>

#include "tests/kernels/targets.h"

namespace elliptical::kernels::test {
namespace {

std::string joined_targets() {
  std::string result;
  for (const std::string& name : simd_targets()) result += (result.empty() ? "" : ", ") + name;
  return result;
}

/// What the library should say to a name it does not know.
std::string refusal(const std::string& name) {
  return "simd: target must be one of " + joined_targets() + " on this CPU, got \"" + name + "\"";
}

std::string message_of_use(const std::string& name) {
  try {
    simd_use(name);
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "accepted";
}

TEST(Simd, EveryRunnableTargetIsCompiled) {
  ASSERT_FALSE(simd_targets().empty());
  const std::vector<std::string> compiled = simd_compiled_targets();
  for (const std::string& name : simd_targets())
    EXPECT_NE(std::find(compiled.begin(), compiled.end(), name), compiled.end()) << name;
}

TEST(Simd, K8_EachTargetCanBeForced) {
  for (const std::string& name : simd_targets()) {
    simd_use(name);
    EXPECT_EQ(simd_target(), name);
  }
  simd_use("");
  EXPECT_EQ(simd_target(), simd_targets().front());
}

TEST(Simd, WrongNameIsRefusedWithThePossibleOnes) {
  const std::string before = simd_target();
  for (const char* name : {"avx9", "AVX2", "avx2 ", "none"})
    EXPECT_EQ(message_of_use(name), refusal(name));
  EXPECT_EQ(simd_target(), before) << "a refused name changes nothing";
}

// Also what a process started by the tests below runs: it prints the target, or why there is none.
TEST(Simd, PrintsTheTargetInUse) {
  try {
    const std::vector<std::string> runnable = simd_targets();
    EXPECT_EQ(std::count(runnable.begin(), runnable.end(), simd_target()), 1);
    std::printf("target=%s;", simd_target().c_str());
  } catch (const std::invalid_argument& error) {
    std::printf("error=%s;", error.what());
  }
}

/// Output of PrintsTheTargetInUse in a process with ELLIPTICAL_SIMD=name.
std::string child_output(const std::string& name) {
  char path[4096] = {};
  if (readlink("/proc/self/exe", path, sizeof path - 1) < 0) return "no /proc/self/exe";
  const std::string command = "ELLIPTICAL_SIMD='" + name + "' '" + path +
                              "' --gtest_output= --gtest_filter=Simd.PrintsTheTargetInUse";
  FILE* child = popen(command.c_str(), "r");
  if (!child) return "popen failed";
  std::string output;
  char buffer[512];
  while (std::fgets(buffer, sizeof buffer, child)) output += buffer;
  return pclose(child) == 0 ? output : "child failed: " + output;
}

TEST(Simd, K8_EnvironmentForcesATarget) {
  for (const std::string& name : simd_targets())
    EXPECT_NE(child_output(name).find("target=" + name + ";"), std::string::npos) << name;
  EXPECT_NE(child_output("").find("target=" + simd_targets().front() + ";"), std::string::npos)
      << "an empty variable is no choice";
}

TEST(Simd, WrongEnvironmentIsRefusedWithThePossibleNames) {
  const std::string output = child_output("avx9");
  EXPECT_NE(output.find("error=" + refusal("avx9") + ";"), std::string::npos) << output;
}

}  // namespace
}  // namespace elliptical::kernels::test
