// SPDX-License-Identifier: MIT
//
// What is measured: one case is a shape with its options and the speed it must reach. The same
// cases serve `elliptical bench` and the tests.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace elliptical::bench {

enum class Pass { kForward, kForwardBackward };
enum class Metric { kRow, kPerQuery };           ///< (1, H, 1, D) or (B, H, N, D)
enum class Mask { kNone, kPadding, kAdditive };  ///< key_lengths, or a float (B, 1, N, N)

/// Peers a case can be compared with. "plain" is our own op without a metric: the metric's price.
std::vector<std::string> peer_names();

/// Attention of N queries over N keys, float32. Ours always has a metric.
struct Case {
  int64_t B = 0, H = 0, N = 0, D = 0;
  bool is_causal = false;
  Metric metric = Metric::kRow;
  Mask mask = Mask::kNone;
  /// The peer of the targets below; other peers are shown without one.
  std::string rival = "sdpa";
  /// Time of the rival over ours that must be reached, by pass.
  double must_forward = 0, must_backward = 0;
  bool is_quick = false;  ///< also in the quick selection

  std::string name() const;  ///< "4,8,256,16 causal", unique
  double must(Pass pass) const;
  double flops(Pass pass) const;  ///< of the products; without the causal half, with padding
};

std::string name(Pass pass);

/// Every case, in the order of the table in the README.
std::vector<Case> all_cases();

}  // namespace elliptical::bench
