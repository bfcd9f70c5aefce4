// SPDX-License-Identifier: MIT
#include "elliptical/base/child_process.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

namespace elliptical {
namespace {

/// What `env` prints when it is started as a child, with a line end before each variable.
std::string variables_of_a_child() {
  int ends[2];
  if (pipe(ends) != 0) return "no pipe";
  const pid_t child = start_child({"env"}, STDIN_FILENO, ends[1]);
  close(ends[1]);
  std::string text = "\n";
  char buffer[4096];
  for (ssize_t count; (count = read(ends[0], buffer, sizeof buffer)) > 0;) {
    text.append(buffer, static_cast<size_t>(count));
  }
  close(ends[0]);
  EXPECT_EQ(wait_for_child(child), 0);
  return text;
}

bool has(const std::string& variables, const std::string& name) {
  return variables.find("\n" + name + "=") != std::string::npos;
}

TEST(ChildProcess, IsToldHowToWaitByTheUserAlone) {
  setenv("GOMP_SPINCOUNT", "7", 1);
  unsetenv(kOwnWaitsVariable);
  EXPECT_TRUE(has(variables_of_a_child(), "GOMP_SPINCOUNT")) << "the user's";
  setenv(kOwnWaitsVariable, "1", 1);
  const std::string variables = variables_of_a_child();
  unsetenv(kOwnWaitsVariable);
  unsetenv("GOMP_SPINCOUNT");
  EXPECT_FALSE(has(variables, "GOMP_SPINCOUNT")) << "the program's own";
  EXPECT_FALSE(has(variables, kOwnWaitsVariable));
  EXPECT_TRUE(has(variables, "PATH"));
}

TEST(ChildProcess, DoesNotSeeWhatLoadsCode) {
  setenv("PYTHONSTARTUP", "/x", 1);
  setenv("NODE_OPTIONS", "/x", 1);
  const std::string variables = variables_of_a_child();
  unsetenv("PYTHONSTARTUP");
  unsetenv("NODE_OPTIONS");
  EXPECT_FALSE(has(variables, "PYTHONSTARTUP"));
  EXPECT_FALSE(has(variables, "NODE_OPTIONS"));
}

}  // namespace
}  // namespace elliptical
