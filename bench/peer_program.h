// SPDX-License-Identifier: MIT
//
// A peer in PyTorch, as a program that answers requests in JSON: what is timed runs there.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "bench/line_process.h"

namespace elliptical::bench {

class PeerProgram {
 public:
  /// A script of bench/peers, which `open` tells what to compute.
  PeerProgram(const std::string& script, const nlohmann::json& open);

  int64_t num_parameters() const { return num_parameters_; }
  /// Throws std::runtime_error when it gives no answer.
  nlohmann::json ask(const nlohmann::json& request);

 private:
  std::string script_;
  LineProcess child_;
  int64_t num_parameters_ = 0;
};

}  // namespace elliptical::bench
