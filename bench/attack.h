// SPDX-License-Identifier: MIT
//
// PGD on a vision transformer against the same attack on the same model in PyTorch eager
// (bench/peers/vit_attack.py, a child process), in turns. Weights are drawn, pictures too: what is
// measured is time.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "bench/measure.h"

namespace elliptical::bench {

/// DeiT-tiny on pictures of the size of CIFAR's by default.
struct AttackCase {
  int64_t pictures = 64, image_size = 32, patch_size = 4;
  int64_t num_layers = 12, dim = 192, num_heads = 3, num_classes = 10;
  int64_t steps = 20;
};

/// Attention of the attacked model, and whether gradients pass through its metric.
struct AttackedModel {
  const char* attention;
  bool through_metric;
  /// "softmax", "elliptical", "elliptical through"
  std::string text() const;
};

/// Somebody who attacks.
class Attacker {
 public:
  virtual ~Attacker() = default;
  virtual std::string name() const = 0;  ///< "softmax", "torch softmax", ...
  virtual int64_t num_parameters() const = 0;
  /// The whole attack, in seconds.
  virtual double attack() = 0;
};

std::unique_ptr<Attacker> make_our_attacker(const AttackCase& shape, const AttackedModel& model);
/// Throws std::runtime_error when the peer can not be started.
std::unique_ptr<Attacker> make_torch_attacker(const AttackCase& shape,
                                              const AttackedModel& model,
                                              int num_threads);

struct AttackResult {
  std::string attacker;
  int64_t num_parameters = 0;
  Timing timing;  ///< seconds per attack
};

/// Everybody in turns, after one attack to warm up.
std::vector<AttackResult> measure_attacks(const std::vector<Attacker*>& attackers,
                                          int repeats,
                                          const ProgressFn& progress = {});

}  // namespace elliptical::bench
