// SPDX-License-Identifier: MIT
//
// Linear layers read their weights in packed form. In training that is made for each call: it is a
// hundredth of a product with many rows, and nothing can be out of date. Evaluations and attacks
// read the same weights thousands of times, often for few rows: they say so, and it is made once.
#pragma once

namespace elliptical::ops {

/// While one lives, products in this thread keep the packed form of the weights they read. A weight
/// that torch changes in place meanwhile is packed anew; whoever writes to its memory by other
/// means must not do so. One inside another adds nothing.
class FrozenWeights {
 public:
  FrozenWeights();
  ~FrozenWeights();
  FrozenWeights(const FrozenWeights&) = delete;
  FrozenWeights& operator=(const FrozenWeights&) = delete;

 private:
  bool is_outermost_;
};

}  // namespace elliptical::ops
