// SPDX-License-Identifier: MIT
#include "bench/peer_program.h"

#include <stdexcept>

namespace elliptical::bench {

PeerProgram::PeerProgram(const std::string& script, const nlohmann::json& open)
    : script_(script), child_(script, {"--serve"}) {
  num_parameters_ = ask({{"open", open}}).at("parameters").get<int64_t>();
}

nlohmann::json PeerProgram::ask(const nlohmann::json& request) {
  const std::string answer = child_.ask(request.dump());
  if (answer.empty()) {
    throw std::runtime_error("bench: the peer " + script_ +
                             " gave no answer (run it by hand with " + peer_python() + ")");
  }
  return nlohmann::json::parse(answer);
}

}  // namespace elliptical::bench
