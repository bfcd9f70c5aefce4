// SPDX-License-Identifier: MIT
#include "elliptical/run/jobs.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "elliptical/base/errors.h"
#include "elliptical/base/records.h"
#include "elliptical/measure/labels.h"
#include "elliptical/run/failure_text.h"

namespace elliptical::run {
namespace {

// What goes through the pipe is records: they are lines of text already, whatever is in them.
constexpr const char* kProgress = "progress";
constexpr const char* kNotice = "notice";
constexpr const char* kData = "data";
constexpr const char* kError = "error";
constexpr std::chrono::milliseconds kReport{100};

void send(int pipe, const Record& record) {
  const std::string line = to_json_line(record) + "\n";
  size_t done = 0;
  while (done < line.size()) {
    const ssize_t count = write(pipe, line.data() + done, line.size() - done);
    if (count < 0 && errno != EINTR) return;  // nobody listens: the parent is gone, and so are we
    if (count > 0) done += static_cast<size_t>(count);
  }
}

void send_text(int pipe, const char* kind, const std::string& text) {
  send(pipe, {.metric = kind, .labels = {{"text", text}}});
}

void send_progress(int pipe, const Progress& progress) {
  Record record{.metric = kProgress,
                .count = progress.done,
                .labels = {{"phase", progress.phase},
                           {"total", progress.total},
                           {"rate", progress.units_per_second},
                           {"unit", progress.unit},
                           {"seconds_left", progress.seconds_left}}};
  if (progress.loss) record.labels["loss"] = *progress.loss;
  send(pipe, record);
}

Progress received_progress(const Record& record) {
  Progress progress{.phase = measure::required_label<std::string>(record, "phase"),
                    .done = record.count,
                    .total = measure::required_label<int64_t>(record, "total"),
                    .units_per_second = measure::required_label<double>(record, "rate"),
                    .unit = measure::required_label<std::string>(record, "unit"),
                    .seconds_left = measure::required_label<double>(record, "seconds_left")};
  if (record.labels.contains("loss"))
    progress.loss = measure::required_label<double>(record, "loss");
  return progress;
}

/// Hooks that report through a pipe, progress not more often than anybody could read.
LoopHooks pipe_hooks(int pipe) {
  auto next = std::make_shared<std::chrono::steady_clock::time_point>();
  return {.notice = [pipe](const std::string& line) { send_text(pipe, kNotice, line); },
          .progress =
              [pipe, next](const Progress& progress) {
                const auto now = std::chrono::steady_clock::now();
                if (now < *next && progress.done != progress.total) return;
                *next = now + kReport;
                send_progress(pipe, progress);
              },
          .data = [pipe](const std::string& line) { send_text(pipe, kData, line); }};
}

/// The handlers of the parent mean nothing here; what was ignored (nohup) stays ignored.
void use_default_signals() {
  for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGUSR1}) {
    struct sigaction before = {};
    sigaction(number, nullptr, &before);
    if (before.sa_handler != SIG_IGN) signal(number, SIG_DFL);
  }
}

[[noreturn]] void be_child(pid_t parent, int pipe, const Work& work) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(1);  // it died before the line above
  setpgid(0, 0);
  int status = 0;
  try {
    work(pipe_hooks(pipe));
  } catch (const std::exception& error) {
    send_text(pipe, kError, failure_text(error));
    status = exit_status(error);
  }
  _exit(status);  // nothing of the parent is flushed or destroyed twice
}

}  // namespace

Jobs::~Jobs() {
  for (auto& [job, child] : children_) kill(child.pid, SIGKILL);
  for (auto& [job, child] : children_) {
    while (waitpid(child.pid, nullptr, 0) < 0 && errno == EINTR) continue;
    close(child.pipe);
  }
}

void Jobs::start(size_t job, const Work& work) {
  const auto fail = [](const char* what) {
    throw std::runtime_error(std::string(what) + ": " + std::strerror(errno));
  };
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) fail("pipe: could not be made");
  // A signal between fork and the child's own handlers must not run the parent's there.
  sigset_t all, before;
  sigfillset(&all);
  sigprocmask(SIG_BLOCK, &all, &before);
  const pid_t parent = getpid();
  const pid_t pid = fork();
  if (pid == 0) {
    close(ends[0]);
    for (const auto& [other, child] : children_) close(child.pipe);
    use_default_signals();
    sigprocmask(SIG_SETMASK, &before, nullptr);
    be_child(parent, ends[1], work);
  }
  const int code = errno;
  sigprocmask(SIG_SETMASK, &before, nullptr);
  close(ends[1]);
  if (pid < 0) {
    close(ends[0]);
    errno = code;
    fail("process: could not be started");
  }
  children_.emplace(job, Child{.pid = pid, .pipe = ends[0]});
}

std::vector<JobEvent> Jobs::wait(std::chrono::milliseconds timeout) {
  std::vector<pollfd> files;
  std::vector<size_t> jobs;
  for (const auto& [job, child] : children_) {
    files.push_back({.fd = child.pipe, .events = POLLIN});
    jobs.push_back(job);
  }
  std::vector<JobEvent> events;
  if (poll(files.data(), files.size(), static_cast<int>(timeout.count())) <= 0) return events;
  for (size_t i = 0; i < files.size(); ++i) {
    if (files[i].revents == 0) continue;
    Child& child = children_.at(jobs[i]);
    if (read_from(jobs[i], child, events)) continue;
    events.push_back(finish(jobs[i], child));
    children_.erase(jobs[i]);
  }
  return events;
}

bool Jobs::read_from(size_t job, Child& child, std::vector<JobEvent>& events) {
  char buffer[4096];
  const ssize_t count = read(child.pipe, buffer, sizeof buffer);
  if (count < 0) return errno == EINTR;
  if (count == 0) return false;
  child.text.append(buffer, static_cast<size_t>(count));
  size_t end;
  while ((end = child.text.find('\n')) != std::string::npos) {
    const Record record = parse_record(child.text.substr(0, end));
    child.text.erase(0, end + 1);
    if (record.metric == kError) {
      child.error = measure::required_label<std::string>(record, "text");
    } else if (record.metric == kNotice) {
      events.push_back(
          {.job = job, .notice = measure::required_label<std::string>(record, "text")});
    } else if (record.metric == kData) {
      events.push_back({.job = job, .data = measure::required_label<std::string>(record, "text")});
    } else {
      events.push_back({.job = job, .progress = received_progress(record)});
    }
  }
  return true;
}

JobEvent Jobs::finish(size_t job, Child& child) {
  int state = 0;
  while (waitpid(child.pid, &state, 0) < 0 && errno == EINTR) continue;
  close(child.pipe);
  JobEvent event{.job = job, .error = child.error};
  if (WIFEXITED(state)) {
    event.status = WEXITSTATUS(state);
  } else {
    event.status = 128 + WTERMSIG(state);
    event.error = WTERMSIG(state) == SIGKILL
                      ? "ended by SIGKILL, which the system sends when memory runs out (fewer "
                        "--jobs, then the same command again)"
                      : std::string("ended by signal ") + strsignal(WTERMSIG(state));
  }
  return event;
}

void Jobs::ask_to_stop() {
  for (const auto& [job, child] : children_) kill(child.pid, SIGTERM);
}

}  // namespace elliptical::run
