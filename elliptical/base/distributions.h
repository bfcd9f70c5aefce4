// SPDX-License-Identifier: MIT
//
// Numbers that are not uniform, from a RandomStream. Each draws a fixed number of uniforms, or as
// many as its rejection needs; either way the result is a function of the stream's key alone.
#pragma once

#include <cstdint>

#include "elliptical/base/random.h"

namespace elliptical {

/// Uniform in [low, high).
inline double draw_uniform(RandomStream& random, double low, double high) {
  return low + (high - low) * random.uniform();
}

/// True with that probability.
inline bool draw_bool(RandomStream& random, double probability) {
  return random.uniform() < probability;
}

/// Normal with mean 0 and deviation 1.
double draw_normal(RandomStream& random);

/// Many of them, at half the price: Box-Muller gives two at a time.
void draw_normals(RandomStream& random, double mean, double deviation, double* to, int64_t count);

/// Gamma with that shape > 0 and scale 1.
double draw_gamma(RandomStream& random, double shape);

/// Beta(a, b), a and b > 0.
double draw_beta(RandomStream& random, double a, double b);

/// Where a random permutation of the numbers below `size` puts `position`; without a table, so that
/// a place in an epoch of a million pictures is found at once. `position` < `size`.
uint64_t permuted(RandomKey key, uint64_t size, uint64_t position);

}  // namespace elliptical
