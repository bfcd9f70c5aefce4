// SPDX-License-Identifier: MIT
//
// How a peer that lives in another program takes its turns: lines over a socket.
#pragma once

#include <string>
#include <vector>

namespace elliptical::bench {

/// A child process that answers one line for each line it gets.
class LineProcess {
 public:
  explicit LineProcess(const std::vector<std::string>& command);
  ~LineProcess();
  LineProcess(const LineProcess&) = delete;
  LineProcess& operator=(const LineProcess&) = delete;

  /// The child's answer, or an empty line when it is gone.
  std::string ask(const std::string& line);

 private:
  int pid_ = -1;
  int socket_ = -1;  ///< the child's standard input and output
};

/// The Python that peers run in: ELLIPTICAL_PYTHON, or the project's own.
std::string peer_python();

}  // namespace elliptical::bench
