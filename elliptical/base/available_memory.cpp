// SPDX-License-Identifier: MIT
#include "elliptical/base/available_memory.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <sstream>

#include "elliptical/base/errors.h"

namespace elliptical {
namespace {

namespace fs = std::filesystem;

constexpr const char* kVariable = "ELLIPTICAL_MEMORY";

std::string read_small(const fs::path& file) {
  std::ifstream stream(file);
  std::ostringstream text;
  text << stream.rdbuf();
  return text.str();
}

/// The number that a file holds; nothing where there is none ("max").
std::optional<double> read_number(const fs::path& file) {
  const std::string text = read_small(file);
  char* end = nullptr;
  const double number = std::strtod(text.c_str(), &end);
  if (end == text.c_str()) return std::nullopt;
  return number;
}

/// The number behind `name` in lines of "name number".
double number_of(const std::string& text, const std::string& name) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with(name)) return std::strtod(line.c_str() + name.size(), nullptr);
  }
  return 0;
}

std::optional<double> machine_bytes(const fs::path& root) {
  const std::string text = read_small(root / "proc/meminfo");
  if (text.find("MemAvailable:") == std::string::npos) return std::nullopt;
  return 1024 * (number_of(text, "MemAvailable:") + number_of(text, "SwapFree:"));
}

/// What a control group and those above it leave: limit - use, where use counts only what the
/// kernel can not drop when memory gets short.
std::optional<double> group_bytes(const fs::path& top,
                                  const std::string& path,
                                  const char* limit_file,
                                  const char* use_file) {
  std::optional<double> least;
  fs::path group = (top / fs::path(path).relative_path()).lexically_normal();
  // The group's name may be one outside of the container: then only its root is to be seen.
  const auto length = std::distance(top.begin(), top.end());
  while (std::distance(group.begin(), group.end()) >= length) {
    const auto limit = read_number(group / limit_file), use = read_number(group / use_file);
    if (limit && use) {
      const std::string parts = read_small(group / "memory.stat");
      const double droppable =
          std::max(number_of(parts, "inactive_file "), number_of(parts, "total_inactive_file "));
      const double left = std::max(0.0, *limit - *use + droppable);
      least = std::min(left, least.value_or(left));
    }
    group = group.parent_path();
  }
  return least;
}

std::optional<double> all_groups_bytes(const fs::path& root) {
  std::optional<double> least;
  std::istringstream lines(read_small(root / "proc/self/cgroup"));
  for (std::string line; std::getline(lines, line);) {  // 0::/a/b or 4:memory:/a/b
    const size_t first = line.find(':'), second = line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string kinds = "," + line.substr(first + 1, second - first - 1) + ",";
    const std::string path = line.substr(second + 1);
    std::optional<double> left;
    if (kinds == ",,") {
      left = group_bytes(root / "sys/fs/cgroup", path, "memory.max", "memory.current");
    } else if (kinds.find(",memory,") != std::string::npos) {
      left = group_bytes(root / "sys/fs/cgroup/memory", path, "memory.limit_in_bytes",
                         "memory.usage_in_bytes");
    }
    if (left) least = std::min(*left, least.value_or(*left));
  }
  return least;
}

std::optional<double> address_space_bytes(const fs::path& root) {
  rlimit limit{};
  if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return std::nullopt;
  const double pages = read_number(root / "proc/self/statm").value_or(0);
  const double used = pages * static_cast<double>(sysconf(_SC_PAGESIZE));
  return std::max(0.0, static_cast<double>(limit.rlim_cur) - used);
}

/// 2000000, 500M, 16G
double variable_bytes(const std::string& text) {
  char* end = nullptr;
  const double number = std::strtod(text.c_str(), &end);
  double factor = 0;
  for (const auto& [name, power] : {std::pair("", 1e0), std::pair("K", 1e3), std::pair("M", 1e6),
                                    std::pair("G", 1e9), std::pair("T", 1e12)}) {
    if (end != text.c_str() && std::string(end) == name) factor = power;
  }
  if (factor == 0 || !std::isfinite(number) || number < 0) {
    throw UsageError(std::string(kVariable) + ": must be a number of bytes, 16G for instance, or " +
                     "none, got \"" + text + "\"");
  }
  return number * factor;
}

}  // namespace

std::optional<AvailableMemory> available_memory(const fs::path& root) {
  std::optional<AvailableMemory> least;
  const auto bound = [&](std::optional<double> bytes, const std::string& before,
                         const std::string& after) {
    if (!bytes || (least && *bytes >= least->bytes)) return;
    least = {*bytes, before + bytes_text(*bytes) + after};
  };
  const char* variable = std::getenv(kVariable);
  if (variable != nullptr && std::string(variable) == "none") return std::nullopt;
  if (variable != nullptr && *variable != '\0') {
    bound(variable_bytes(variable), std::string(kVariable) + " allows ", "");
    return least;
  }
  bound(machine_bytes(root), "the machine has ", " free");
  bound(all_groups_bytes(root), "the control group leaves ", "");
  bound(address_space_bytes(root), "the limit of address space (ulimit -v) leaves ", "");
  return least;
}

void require_memory(double bytes, const std::string& subject, const std::string& advice) {
  const std::optional<AvailableMemory> available = available_memory();
  if (!available || bytes <= available->bytes) return;
  throw MemoryError(subject + ": needs about " + bytes_text(bytes) + " of memory, " +
                    available->bound + " (" + advice + "; " + kVariable +
                    "=none tries all the same)");
}

std::string bytes_text(double bytes) {
  constexpr std::array kUnits = {"bytes", "kB", "MB", "GB", "TB", "PB", "EB"};
  size_t unit = 0;
  while (bytes >= 999.95 && unit + 1 < kUnits.size()) {
    bytes /= 1000;
    ++unit;
  }
  char text[40];
  std::snprintf(text, sizeof text, unit == 0 ? "%.0f %s" : "%.1f %s", bytes, kUnits[unit]);
  return text;
}

std::string allocation_failure_text(double bytes) {
  std::optional<AvailableMemory> available;
  try {
    available = available_memory();
  } catch (const UsageError&) {
    // A bound that can not be read is no reason to say nothing about memory.
  }
  return "memory: " +
         (bytes > 0 ? bytes_text(bytes) + " more were asked for and could not be had"
                    : std::string("more was asked for than could be had")) +
         (available ? ", " + available->bound : "") +
         " (smaller batches, windows or models; fewer --jobs; close other programs)";
}

}  // namespace elliptical
