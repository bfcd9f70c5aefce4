// SPDX-License-Identifier: MIT
#include "elliptical/run/progress.h"

#include <algorithm>
#include <array>
#include <cinttypes>
#include <cmath>
#include <cstdio>
#include <vector>

namespace elliptical::run {
namespace {

template <class... Arguments>
std::string format(const char* pattern, Arguments... arguments) {
  std::array<char, 128> buffer;
  std::snprintf(buffer.data(), buffer.size(), pattern, arguments...);
  return buffer.data();
}

double part_done(const Progress& progress) {
  if (progress.total <= 0) return 1.0;
  return std::clamp(static_cast<double>(progress.done) / static_cast<double>(progress.total), 0.0,
                    1.0);
}

/// What is said, the most important first.
std::vector<std::string> pieces(const Progress& progress) {
  std::vector<std::string> result;
  result.push_back(format("%3d%% %" PRId64 "/%" PRId64, static_cast<int>(part_done(progress) * 100),
                          progress.done, progress.total));
  if (progress.loss) result.push_back(format("loss %.4g", *progress.loss));
  if (progress.units_per_second > 0) {
    result.push_back(rate_text(progress.units_per_second) + " " + progress.unit + "/s");
    result.push_back("ETA " + duration_text(progress.seconds_left));
  }
  return result;
}

}  // namespace

std::string duration_text(double seconds) {
  if (!(seconds >= 0) || seconds > 1e12) return "?";
  const auto total = static_cast<int64_t>(std::llround(seconds));
  const int64_t days = total / 86400, hours = total / 3600 % 24;
  const int64_t minutes = total / 60 % 60, rest = total % 60;
  if (days > 0) {
    return format("%" PRId64 "d %02" PRId64 ":%02" PRId64 ":%02" PRId64, days, hours, minutes,
                  rest);
  }
  if (hours > 0) return format("%" PRId64 ":%02" PRId64 ":%02" PRId64, hours, minutes, rest);
  return format("%" PRId64 ":%02" PRId64, minutes, rest);
}

std::string rate_text(double rate) {
  constexpr std::array kLetters = {"", "k", "M", "G", "T"};
  size_t letter = 0;
  for (; rate >= 999.5 && letter + 1 < kLetters.size(); rate /= 1000) ++letter;
  const int digits = rate >= 99.95 ? 0 : rate >= 9.995 ? 1 : 2;
  return format("%.*f%s", digits, rate, kLetters[letter]);
}

std::string progress_bar(const Progress& progress, int width) {
  constexpr int kBar = 20;
  const auto columns = static_cast<size_t>(std::max(width, 0));
  const int filled = static_cast<int>(part_done(progress) * kBar);
  std::string line = format("%-5s", progress.phase.c_str());
  const std::string bar = "  [" + std::string(filled, '#') + std::string(kBar - filled, '-') + "]";
  const std::vector<std::string> all = pieces(progress);
  // The bar is the first thing to go.
  if (line.size() + bar.size() + 2 + all.front().size() <= columns) line += bar;
  for (const std::string& piece : all) {
    if (line.size() + 2 + piece.size() > columns) break;
    line += "  " + piece;
  }
  return line.substr(0, columns);
}

std::string progress_text(const Progress& progress) {
  std::string line = progress.phase + ":";
  for (const std::string& piece : pieces(progress)) {
    line += "  " + piece.substr(piece.find_first_not_of(' '));
  }
  return line;
}

}  // namespace elliptical::run
