// SPDX-License-Identifier: MIT
//
// How far the work is, as one line of text. A pure function: what a terminal or a log file does
// with the line is the program's affair.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace elliptical::run {

struct Progress {
  std::string phase = "train";  ///< "train", "eval"
  int64_t done = 0, total = 0;  ///< steps or batches
  std::optional<double> loss;
  double units_per_second = 0;  ///< 0: not known yet
  std::string unit = "tokens";
  double seconds_left = 0;  ///< of this phase; only with a rate
};

/// One line of at most `width` columns with a bar; what does not fit is left out from the end.
///     train  [####------]  40% 400/1000  loss 5.123  12.3k tokens/s  ETA 1:02:03
std::string progress_bar(const Progress& progress, int width);

/// The same without the bar, for log files.
std::string progress_text(const Progress& progress);

/// "0:07", "12:34", "1:02:03", "3d 04:05:06"
std::string duration_text(double seconds);

/// "12.3k": three digits and a letter.
std::string rate_text(double rate);

}  // namespace elliptical::run
