// SPDX-License-Identifier: MIT
#include "elliptical/base/child_process.h"

#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <string_view>

extern char** environ;  // POSIX declares it nowhere

namespace elliptical {
namespace {

/// The variables that a child is given.
std::vector<char*> child_environment() {
  const bool own_waits = std::getenv(kOwnWaitsVariable) != nullptr;
  std::vector<char*> variables;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    const std::string_view text = *variable;
    const bool loads_code = text.starts_with("PYTHON") || text.starts_with("NODE_OPTIONS=") ||
                            text.starts_with("NODE_PATH=");
    const bool is_ours =
        own_waits && (text.starts_with("GOMP_SPINCOUNT=") || text.starts_with(kOwnWaitsVariable));
    if (!loads_code && !is_ours) variables.push_back(*variable);
  }
  variables.push_back(nullptr);
  return variables;
}

constexpr int kNotStarted = 127;  // what shells say

}  // namespace

pid_t start_child(std::vector<std::string> words, int input, int output) {
  // A name without a slash is looked for in PATH.
  if (words[0].find('/') != std::string::npos) {
    words[0] = std::filesystem::absolute(words[0]).string();
  }
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  std::vector<char*> variables = child_environment();

  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, input, STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
  posix_spawn_file_actions_addchdir_np(&actions, "/");
  pid_t child = 0;
  const int error =
      posix_spawnp(&child, arguments[0], &actions, nullptr, arguments.data(), variables.data());
  posix_spawn_file_actions_destroy(&actions);
  return error == 0 ? child : 0;
}

int wait_for_child(pid_t child) {
  if (child <= 0) return kNotStarted;
  int status = 0;
  while (::waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) return kNotStarted;
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace elliptical
