// SPDX-License-Identifier: MIT
#include "elliptical/data/corrupt/plasma_impl.h"

#include "elliptical/base/distributions.h"

namespace elliptical::data {

Field plasma(int64_t size, double decay, RandomKey key) {
  constexpr double kFirstNoise = 100;
  Field map(size, size);
  RandomStream random(key);
  double noise = kFirstNoise;
  const auto wrapped = [&](int64_t y, int64_t x) -> double& {
    return *map.at((y + size) % size, (x + size) % size);
  };
  const auto disturbed = [&](double sum) {
    return sum / 4 + noise * draw_uniform(random, -noise, noise);
  };
  for (int64_t step = size; step >= 2; step /= 2, noise /= decay) {
    const int64_t half = step / 2;
    for (int64_t y = 0; y < size; y += step) {  // centres, from the corners of their square
      for (int64_t x = 0; x < size; x += step) {
        wrapped(y + half, x + half) = disturbed(wrapped(y, x) + wrapped(y + step, x) +
                                                wrapped(y, x + step) + wrapped(y + step, x + step));
      }
    }
    for (int64_t y = 0; y < size; y += step) {  // middles of edges, from two corners, two centres
      for (int64_t x = 0; x < size; x += step) {
        wrapped(y, x + half) = disturbed(wrapped(y, x) + wrapped(y, x + step) +
                                         wrapped(y - half, x + half) + wrapped(y + half, x + half));
        wrapped(y + half, x) = disturbed(wrapped(y, x) + wrapped(y + step, x) +
                                         wrapped(y + half, x - half) + wrapped(y + half, x + half));
      }
    }
  }
  const auto [low, high] = std::minmax_element(map.values.begin(), map.values.end());
  const double from = *low, range = *high - *low;
  for (double& value : map.values) value = (value - from) / range;
  return map;
}

}  // namespace elliptical::data
