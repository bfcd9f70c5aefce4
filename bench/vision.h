// SPDX-License-Identifier: MIT
//
// The vision transformer against the same model in PyTorch eager with its fused attention
// (bench/peers/vit.py, a child process) on the same weights and pictures, in turns: inference, and
// training steps of forward, cross entropy, backward and AdamW. Before anything is timed, everybody
// has to give the same logits.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "bench/measure.h"

namespace elliptical::bench {

/// DeiT-tiny by default.
struct VisionCase {
  int64_t batch = 16, image_size = 224, patch_size = 16;
  int64_t dim = 192, num_layers = 12, num_heads = 3, num_classes = 1000;
};

enum class VisionPass { kInference, kTraining };
std::string_view to_string(VisionPass pass);

/// Somebody who has the model.
class VisionRunner {
 public:
  virtual ~VisionRunner() = default;
  virtual std::string name() const = 0;  ///< "softmax", "torch elliptical", ...
  virtual int64_t num_parameters() const = 0;
  /// Logits (B * K) of the case's pictures with the first weights.
  virtual std::vector<double> logits() = 0;
  /// One pass, in seconds.
  virtual double run(VisionPass pass) = 0;
};

std::unique_ptr<VisionRunner> make_our_vision(const VisionCase& shape,
                                              const std::string& attention);
/// Throws std::runtime_error when the peer can not be started.
std::unique_ptr<VisionRunner> make_torch_vision(const VisionCase& shape,
                                                const std::string& attention,
                                                int num_threads);

struct VisionResult {
  VisionPass pass = VisionPass::kInference;
  std::string runner;
  int64_t num_parameters = 0;
  Timing timing;  ///< seconds per batch
};

/// A ratio that is to be shown: how many times as fast `ours` is as `peer`.
struct VisionTarget {
  VisionPass pass;
  const char* ours;
  const char* peer;
  double must;
};
const std::vector<VisionTarget>& vision_targets();

/// Everybody in turns, after two rounds to warm up, inference first. Throws std::runtime_error when
/// a peer of the same attention says something else.
std::vector<VisionResult> measure_vision(const std::vector<VisionRunner*>& runners,
                                         int repeats,
                                         const ProgressFn& progress = {});

}  // namespace elliptical::bench
