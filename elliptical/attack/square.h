// SPDX-License-Identifier: MIT
//
// Square attack (Andriushchenko et al. 2020): random search without gradients. Starts from vertical
// stripes of +eps and -eps, then tries squares whose channels are all +eps or all -eps and keeps
// what lowers the margin z_y - max_{j != y} z_j. The squares shrink with the number of the query.
// Each picture draws its own squares; the reference draws one for the whole batch.
#pragma once

#include "elliptical/attack/attack.h"

namespace elliptical::attack {

struct SquareOptions : Options {
  int64_t queries = 5000;
  double first_ratio = 0.8;
  bool rescale = false;
  void visit(FieldList& fields) override;
  std::unique_ptr<Options> clone() const override { return std::make_unique<SquareOptions>(*this); }
};

std::unique_ptr<Attack> make_square(const Options& options);

/// Side of the square of query number `query` (from 0) in pictures of height x width.
int64_t square_side(int64_t query, int64_t height, int64_t width, const SquareOptions& options);

struct SquareResult {
  at::Tensor x;       ///< (n, C, H, W) the picture with the lowest margin
  at::Tensor margin;  ///< (n)
  at::Tensor broken;  ///< (n) bool
};
SquareResult square_search(const Problem& problem, const SquareOptions& options);

}  // namespace elliptical::attack
