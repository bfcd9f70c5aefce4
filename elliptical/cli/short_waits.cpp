// SPDX-License-Identifier: MIT
#include "elliptical/cli/short_waits.h"

#include <linux/limits.h>
#include <sys/auxv.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <string_view>

#include "elliptical/base/child_process.h"

namespace elliptical::cli {
namespace {

// Some ten microseconds, longer than most waits at the end of a loop. On two cores with nothing
// else to do, a training step of recipes/lm/two-core-elliptical.toml takes up to 3 % longer than
// with the library's 300,000; 3,000 cost half of that and left 0.38 of the speed beside a busy
// process, where this leaves 0.47 (README, "Beside other programs").
constexpr char kShortWaits[] = "GOMP_SPINCOUNT=1000";
constexpr char kShortWaitsAreOurs[] = "ELLIPTICAL_OWN_WAITS=1";
constexpr char kPolicy[] = "OMP_WAIT_POLICY", kSpinCount[] = "GOMP_SPINCOUNT";

constexpr size_t kMostVariables = 4096;

bool is_variable(std::string_view entry, std::string_view name) {
  return entry.starts_with(name) && entry.substr(name.size()).starts_with("=");
}

/// Valgrind by default does not go along into a program that is started, not even into the same.
bool is_valgrind(std::string_view entry) {
  return is_variable(entry, "LD_PRELOAD") && entry.find("vgpreload") != std::string_view::npos;
}

}  // namespace

void start_again_with_short_waits(char** argv, char** envp) {
  // "ld.so PROGRAM": the program to start again would be ld.so.
  if (getauxval(AT_BASE) == 0) return;
  std::array<char*, kMostVariables + 3> variables;
  size_t count = 0;
  for (char** entry = envp; *entry != nullptr; ++entry) {
    const bool is_chosen = is_variable(*entry, kPolicy) || is_variable(*entry, kSpinCount) ||
                           is_variable(*entry, kOwnWaitsVariable);
    if (is_chosen || is_valgrind(*entry) || count == kMostVariables) return;
    variables[count++] = *entry;
  }
  // The name that the file has, so that ps and gdb show it.
  std::array<char, PATH_MAX> path;
  const ssize_t length = readlink("/proc/self/exe", path.data(), path.size() - 1);
  if (length <= 0) return;
  path[static_cast<size_t>(length)] = '\0';
  // execve changes nothing of what it is given.
  variables[count++] = const_cast<char*>(kShortWaits);
  variables[count++] = const_cast<char*>(kShortWaitsAreOurs);
  variables[count] = nullptr;
  execve(path.data(), argv, variables.data());
  execve("/proc/self/exe", argv, variables.data());  // the file has been deleted or replaced
  // Not allowed, or no memory: then with long waits.
}

std::string describe_waits() {
  const auto value = [](const char* name) {
    const char* text = std::getenv(name);
    return text ? std::string(name) + "=" + text : "";
  };
  const std::string policy = value(kPolicy), spins = value(kSpinCount);
  if (std::getenv(kOwnWaitsVariable)) return "short (" + spins + ")";
  if (policy.empty() && spins.empty()) return "long (the OpenMP library's own)";
  return "as the environment says (" + policy + (policy.empty() || spins.empty() ? "" : ", ") +
         spins + ")";
}

}  // namespace elliptical::cli
