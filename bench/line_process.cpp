// SPDX-License-Identifier: MIT
#include "bench/line_process.h"

#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>
#include <stdexcept>
#include <utility>

#include "elliptical/base/child_process.h"

namespace elliptical::bench {

std::string peer_python() {
  const char* chosen = std::getenv("ELLIPTICAL_PYTHON");
  return chosen ? chosen : ELLIPTICAL_SOURCE_DIR "/.venv/bin/python";
}

LineProcess::LineProcess(const std::string& script, const std::vector<std::string>& arguments) {
  // A socket, not two pipes: writing to a child that is gone is then an error, not a signal.
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
    throw std::runtime_error("bench: no socket for a peer process");
  }
  socket_ = ends[0];
  std::vector<std::string> words = {peer_python(), "-I",
                                    std::string(ELLIPTICAL_SOURCE_DIR "/bench/peers/") + script};
  words.insert(words.end(), arguments.begin(), arguments.end());
  pid_ = start_child(std::move(words), ends[1], ends[1]);
  close(ends[1]);
}

LineProcess::~LineProcess() {
  close(socket_);  // the child ends when its input does
  if (pid_ > 0) wait_for_child(pid_);
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
