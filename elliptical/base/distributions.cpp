// SPDX-License-Identifier: MIT
#include "elliptical/base/distributions.h"

#include <bit>
#include <cmath>
#include <numbers>

namespace elliptical {
namespace {

struct NormalPair {
  double first, second;
};

/// Box-Muller: two independent normals from two uniforms, the first of them not 0.
NormalPair draw_normal_pair(RandomStream& random) {
  const double radius = std::sqrt(-2.0 * std::log(1.0 - random.uniform()));
  const double angle = 2.0 * std::numbers::pi * random.uniform();
  return {radius * std::cos(angle), radius * std::sin(angle)};
}

}  // namespace

double draw_normal(RandomStream& random) { return draw_normal_pair(random).first; }

void draw_normals(RandomStream& random, double mean, double deviation, double* to, int64_t count) {
  for (int64_t i = 0; i < count; i += 2) {
    const NormalPair pair = draw_normal_pair(random);
    to[i] = mean + deviation * pair.first;
    if (i + 1 < count) to[i + 1] = mean + deviation * pair.second;
  }
}

double draw_gamma(RandomStream& random, double shape) {
  // Gamma(a) = Gamma(a + 1) U^(1/a) for the shapes below 1, which the method below can not do.
  if (shape < 1.0) {
    const double larger = draw_gamma(random, shape + 1.0);
    return larger * std::pow(1.0 - random.uniform(), 1.0 / shape);
  }
  // Marsaglia and Tsang (2000): d (1 + c x)^3 with normal x, accepted with the exact probability.
  const double d = shape - 1.0 / 3.0;
  const double c = 1.0 / std::sqrt(9.0 * d);
  while (true) {
    const double x = draw_normal(random);
    const double root = 1.0 + c * x;
    const double v = root * root * root;
    const double u = 1.0 - random.uniform();
    if (root > 0.0 && std::log(u) < 0.5 * x * x + d * (1.0 - v + std::log(v))) return d * v;
  }
}

double draw_beta(RandomStream& random, double a, double b) {
  if (a == 1.0 && b == 1.0) return random.uniform();
  const double x = draw_gamma(random, a);
  const double y = draw_gamma(random, b);
  // Both can underflow to 0 for tiny shapes; Beta is then a coin.
  return x + y > 0.0 ? x / (x + y) : draw_bool(random, a / (a + b)) ? 1.0 : 0.0;
}

uint64_t permuted(RandomKey key, uint64_t size, uint64_t position) {
  // A Feistel network permutes the numbers of 2h bits, 4^h >= size; walking along its cycle until
  // a number is below `size` restricts it to those (Black and Rogaway 2002): four steps at most on
  // average. Eight rounds, since the halves are short.
  constexpr uint64_t kRounds = 8;
  const int half = (std::bit_width(size - 1) + 1) / 2;
  const uint64_t mask = (uint64_t{1} << half) - 1;
  do {
    uint64_t left = position >> half;
    uint64_t right = position & mask;
    for (uint64_t round = 0; round < kRounds; ++round) {
      const uint64_t mixed = left ^ (key.derive(round).derive(right).bits() & mask);
      left = right;
      right = mixed;
    }
    position = (left << half) | right;
  } while (position >= size);
  return position;
}

}  // namespace elliptical
