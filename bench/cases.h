// SPDX-License-Identifier: MIT
//
// What `elliptical bench` times: cases of attention (attention_case.h), each with the speed it must
// reach. float32, ours always with a metric.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "bench/attention_case.h"

namespace elliptical::bench {

enum class Pass { kForward, kForwardBackward };

/// Somebody a case can be compared with.
struct PeerName {
  const char* name;
  const char* description;  ///< for people
};

/// Those that `--peers` takes.
const std::vector<PeerName>& peers();
/// Their names, and "plain": our own op without a metric, the metric's price, which only cases of
/// it are compared with.
std::vector<std::string> peer_names();

struct TimedCase {
  AttentionCase shape;
  /// Time of the rival over ours that must be reached, by pass.
  double must_forward = 0, must_backward = 0;
  /// The peer of these targets; other peers are shown without one.
  std::string rival = "sdpa";
  bool is_quick = false;  ///< also in the quick selection

  std::string name() const;  ///< "4,8,256,16 causal", unique
  double must(Pass pass) const;
  double flops(Pass pass) const;  ///< of the products; without the causal half, with padding
};

std::string name(Pass pass);

/// From half to whole sequences of N tokens in equal steps: on average three quarters are real.
std::vector<int64_t> padded_lengths(int64_t B, int64_t N);

/// Every case, in the order of the table in the README.
std::vector<TimedCase> all_cases();

}  // namespace elliptical::bench
