// SPDX-License-Identifier: MIT
//
// ONNX Runtime as a peer: a child process (bench/peers/onnxruntime_attention.py) that runs a graph
// with the same elliptical attention on the same tensors and times one call per request, so that
// its calls take turns with ours. Forward only: ONNX Runtime does not train.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "bench/contestant.h"
#include "bench/line_process.h"

namespace elliptical::bench {

class OnnxRuntimePeer : public Contestant {
 public:
  OnnxRuntimePeer(const Problem& problem, int num_threads);
  ~OnnxRuntimePeer() override;

  std::string name() const override { return "ort"; }
  bool with_metric() const override { return true; }
  std::string refusal(Pass pass) const override;
  Results results(Pass pass) override;
  double time(Pass pass) override;

 private:
  const Problem& problem_;
  std::filesystem::path folder_;  ///< tensors on their way to and from the child
  std::unique_ptr<LineProcess> child_;
  std::string refusal_;
};

}  // namespace elliptical::bench
