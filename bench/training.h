// SPDX-License-Identifier: MIT
//
// Training steps of the language model against the same model in PyTorch eager
// (bench/peers/lm_training.py, a child process), in turns, step by step. A step is forward,
// backward, clipping of the gradient norm and Adam, with dropout, on the same shapes; targets
// follow Zipf's law, so that every cluster of the adaptive softmax has work.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "bench/measure.h"
#include "elliptical/base/options.h"

namespace elliptical::models {
struct LmOptions;
}

namespace elliptical::bench {

/// LM small by default.
struct TrainingCase {
  int64_t vocabulary_size = 33278;
  int64_t batch = 8, window = 256;
  int64_t num_layers = 16, dim = 128, num_heads = 8, feedforward_dim = 2048;
  double dropout = 0.1;
  std::vector<int64_t> cutoffs = {};  ///< of the adaptive softmax; its defaults when empty

  int64_t num_tokens() const { return batch * window; }
};

/// The model of recipes/lm/two-core-*.toml.
TrainingCase two_core_case();
/// To see that a measurement works.
TrainingCase tiny_case();

/// A variant with its default options. One without a sound causal form is told that it may see the
/// future: what it costs is worth knowing all the same.
ChosenOptions measured_attention(const std::string& name);

/// Our model of that shape, with one of our attention variants.
models::LmOptions lm_options(const TrainingCase& shape, const std::string& attention);

/// Somebody who trains.
class Trainer {
 public:
  virtual ~Trainer() = default;
  virtual std::string name() const = 0;  ///< "elliptical", "softmax", "torch elliptical", ...
  virtual int64_t num_parameters() const = 0;
  /// One step, in seconds. `loss` is the loss before it.
  virtual double step(double& loss) = 0;
};

std::unique_ptr<Trainer> make_our_trainer(const TrainingCase& shape, const std::string& attention);
/// Throws std::runtime_error when the peer can not be started.
std::unique_ptr<Trainer> make_torch_trainer(const TrainingCase& shape,
                                            const std::string& attention,
                                            int num_threads);

struct TrainingResult {
  TrainingCase shape;
  std::string trainer;
  int64_t num_parameters = 0;
  Timing timing;  ///< seconds per step
  double loss = 0;

  double tokens_per_second() const { return static_cast<double>(shape.num_tokens()) / timing.min; }
};

/// A ratio that is to be shown: how many times as fast `ours` is as `peer`.
struct TrainingTarget {
  const char* ours;
  const char* peer;
  double must;
};
const std::vector<TrainingTarget>& training_targets();

/// Everybody in turns, after two steps to warm up.
std::vector<TrainingResult> measure_training(const TrainingCase& shape,
                                             const std::vector<Trainer*>& trainers,
                                             int repeats,
                                             const ProgressFn& progress = {});

}  // namespace elliptical::bench
