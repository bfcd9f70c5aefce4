// SPDX-License-Identifier: MIT
//
// How a peer that lives in another program takes its turns: lines over a socket.
#pragma once

#include <string>
#include <vector>

namespace elliptical::bench {

/// A script of bench/peers that answers one line for each line it gets. It runs isolated, as
/// base/child_process.h says: paths that it is told must be absolute.
class LineProcess {
 public:
  explicit LineProcess(const std::string& script, const std::vector<std::string>& arguments = {});
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
