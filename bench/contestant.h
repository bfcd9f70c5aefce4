// SPDX-License-Identifier: MIT
//
// Somebody who computes attention and is timed at it: our op, and the peers it is compared with.
#pragma once

#include <memory>
#include <string>

#include "bench/cases.h"
#include "bench/problem.h"

namespace elliptical::bench {

/// Bound to one problem. Every call allocates its outputs, as a user's call does.
class Contestant {
 public:
  virtual ~Contestant() = default;
  virtual std::string name() const = 0;
  /// Whether the metric is part of what it computes: torch's SDPA has none.
  virtual bool with_metric() const = 0;
  /// Why it can not be timed on this pass; empty when it can.
  virtual std::string refusal(Pass pass) const = 0;
  /// One call, for the check of the answer.
  virtual Results results(Pass pass) = 0;
  /// One call, in seconds.
  virtual double time(Pass pass) = 0;
};

/// Our op with the problem's metric.
std::unique_ptr<Contestant> make_ours(const Problem& problem);

/// A peer by its name in `peer_names`; throws UsageError for another one. The problem must outlive
/// it.
std::unique_ptr<Contestant> make_peer(const std::string& name,
                                      const Problem& problem,
                                      int num_threads);

}  // namespace elliptical::bench
