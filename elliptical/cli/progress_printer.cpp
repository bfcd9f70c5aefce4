// SPDX-License-Identifier: MIT
#include "elliptical/cli/progress_printer.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>

#include "elliptical/base/printable.h"

namespace elliptical::cli {
namespace {

constexpr std::chrono::milliseconds kRedraw{100};
constexpr std::chrono::seconds kPlainLine{15};

/// One write, so that lines of several threads or processes do not mix; failure is nobody's affair.
void write_stderr(const std::string& text) {
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, text.data(), text.size());
}

int terminal_width() {
  winsize size = {};
  return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

}  // namespace

ProgressPrinter::ProgressPrinter()
    : is_terminal_(isatty(STDERR_FILENO) != 0), next_(Clock::now()) {}

ProgressPrinter::~ProgressPrinter() { clear(); }

void ProgressPrinter::clear() {
  if (drawn_) write_stderr("\r\033[K");
  drawn_ = false;
}

void ProgressPrinter::show(const run::Progress& progress) {
  const auto now = Clock::now();
  const bool is_last = progress.done == progress.total;
  if (now < next_ && !(is_last && !is_terminal_)) return;
  if (is_terminal_) {
    next_ = now + kRedraw;
    // One column less: writing the last one makes some terminals go to the next line.
    write_stderr("\r" + printable(run::progress_bar(progress, terminal_width() - 1)) + "\033[K");
    drawn_ = true;
  } else {
    next_ = now + kPlainLine;
    write_stderr(printable(run::progress_text(progress)) + "\n");
  }
}

void ProgressPrinter::say(const std::string& line) {
  clear();
  write_stderr(printable(line, LineEnds::kKeep) + "\n");
}

run::LoopHooks ProgressPrinter::hooks() {
  return {.notice = [this](const std::string& line) { say(line); },
          .progress = [this](const run::Progress& progress) { show(progress); }};
}

run::LoopHooks ProgressPrinter::telling_hooks() {
  run::LoopHooks result = hooks();
  result.data = result.notice;
  return result;
}

}  // namespace elliptical::cli
