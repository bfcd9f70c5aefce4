// SPDX-License-Identifier: MIT
#include "bench/line_process.h"

#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <stdexcept>

extern char** environ;  // POSIX declares it nowhere

namespace elliptical::bench {

std::string peer_python() {
  const char* chosen = std::getenv("ELLIPTICAL_PYTHON");
  return chosen ? chosen : ELLIPTICAL_SOURCE_DIR "/.venv/bin/python";
}

LineProcess::LineProcess(const std::vector<std::string>& command) {
  // A socket, not two pipes: writing to a child that is gone is then an error, not a signal.
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
    throw std::runtime_error("bench: no socket for a peer process");
  }
  socket_ = ends[0];
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  std::vector<char*> arguments;
  arguments.reserve(command.size() + 1);
  for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  if (posix_spawnp(&pid_, arguments[0], &actions, nullptr, arguments.data(), environ) != 0)
    pid_ = -1;
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
}

LineProcess::~LineProcess() {
  close(socket_);  // the child ends when its input does
  if (pid_ > 0) waitpid(pid_, nullptr, 0);
}

std::string LineProcess::ask(const std::string& line) {
  const std::string request = line + "\n";
  for (size_t sent = 0; sent < request.size();) {
    const ssize_t count = send(socket_, request.data() + sent, request.size() - sent, MSG_NOSIGNAL);
    if (count <= 0) return "";
    sent += static_cast<size_t>(count);
  }
  std::string answer;
  for (char c = 0; recv(socket_, &c, 1, 0) == 1;) {
    if (c == '\n') return answer;
    answer += c;
  }
  return "";
}

}  // namespace elliptical::bench
