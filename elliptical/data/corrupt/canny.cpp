// SPDX-License-Identifier: MIT
#include "elliptical/data/corrupt/canny_impl.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

namespace elliptical::data {
namespace {

struct Gradient {
  int x = 0, y = 0;
  int strength() const { return std::abs(x) + std::abs(y); }
};

struct Step {
  int64_t dx, dy;
};

/// One of the two neighbours across the edge; the other one is opposite. Directions are cut at 22.5
/// and 67.5 degrees.
Step across(const Gradient& gradient) {
  constexpr double kTan22 = 0.41421356237309503, kTan67 = 2.414213562373095;
  const double x = std::abs(gradient.x), y = std::abs(gradient.y);
  if (y < kTan22 * x) return {-1, 0};
  if (y > kTan67 * x) return {0, -1};
  return {(gradient.x < 0) != (gradient.y < 0) ? 1 : -1, -1};
}

std::vector<Gradient> sobel(const std::vector<uint8_t>& grey, int64_t width, int64_t height) {
  std::vector<Gradient> gradients(grey.size());
  for (int64_t y = 0; y < height; ++y) {
    const uint8_t* const above = &grey[std::max<int64_t>(y - 1, 0) * width];
    const uint8_t* const here = &grey[y * width];
    const uint8_t* const below = &grey[std::min(y + 1, height - 1) * width];
    for (int64_t x = 0; x < width; ++x) {
      const int64_t left = std::max<int64_t>(x - 1, 0), right = std::min(x + 1, width - 1);
      gradients[y * width + x] = {(above[right] + 2 * here[right] + below[right]) -
                                      (above[left] + 2 * here[left] + below[left]),
                                  (below[left] + 2 * below[x] + below[right]) -
                                      (above[left] + 2 * above[x] + above[right])};
    }
  }
  return gradients;
}

}  // namespace

std::vector<uint8_t> canny_edges(
    const std::vector<uint8_t>& grey, int64_t width, int64_t height, int low, int high) {
  const std::vector<Gradient> gradients = sobel(grey, width, height);
  const auto is_inside = [&](int64_t x, int64_t y) {
    return x >= 0 && x < width && y >= 0 && y < height;
  };
  const auto strength = [&](int64_t x, int64_t y) {
    return is_inside(x, y) ? gradients[y * width + x].strength() : 0;
  };
  // Places that may become edges, and those of them that are strong enough to be one.
  std::vector<uint8_t> is_candidate(grey.size()), edges(grey.size());
  std::vector<int64_t> open;
  for (int64_t y = 0; y < height; ++y) {
    for (int64_t x = 0; x < width; ++x) {
      const int64_t place = y * width + x;
      const int here = gradients[place].strength();
      if (here <= low) continue;
      const Step step = across(gradients[place]);
      const int before = strength(x + step.dx, y + step.dy);
      const int after = strength(x - step.dx, y - step.dy);
      // On a plateau the first place wins; a diagonal one has no first.
      const bool is_diagonal = step.dx != 0 && step.dy != 0;
      if (here <= before || here < after || (is_diagonal && here == after)) continue;
      is_candidate[place] = 1;
      if (here <= high) continue;
      edges[place] = 1;
      open.push_back(place);
    }
  }
  while (!open.empty()) {
    const int64_t x = open.back() % width, y = open.back() / width;
    open.pop_back();
    for (int64_t dy = -1; dy <= 1; ++dy) {
      for (int64_t dx = -1; dx <= 1; ++dx) {
        const int64_t place = (y + dy) * width + x + dx;
        if (!is_inside(x + dx, y + dy) || !is_candidate[place] || edges[place]) continue;
        edges[place] = 1;
        open.push_back(place);
      }
    }
  }
  return edges;
}

std::vector<float> distance_to(const std::vector<uint8_t>& ones, int64_t width, int64_t height) {
  struct Neighbour {
    int64_t dx, dy;
    float length;
  };
  // Those before a place in reading order; the second pass goes backwards through their opposites.
  static constexpr std::array<Neighbour, 8> kBefore = {{{-1, -2, 2.1969f},
                                                        {1, -2, 2.1969f},
                                                        {-2, -1, 2.1969f},
                                                        {-1, -1, 1.4f},
                                                        {0, -1, 1.0f},
                                                        {1, -1, 1.4f},
                                                        {2, -1, 2.1969f},
                                                        {-1, 0, 1.0f}}};
  std::vector<float> distances(ones.size());
  std::transform(ones.begin(), ones.end(), distances.begin(), [](uint8_t one) {
    return one != 0 ? 0.0f : std::numeric_limits<float>::infinity();
  });
  const auto relax = [&](int64_t x, int64_t y, int64_t direction) {
    float& here = distances[y * width + x];
    for (const Neighbour& neighbour : kBefore) {
      const int64_t nx = x + direction * neighbour.dx, ny = y + direction * neighbour.dy;
      if (nx < 0 || nx >= width || ny < 0 || ny >= height) continue;
      here = std::min(here, distances[ny * width + nx] + neighbour.length);
    }
  };
  for (int64_t y = 0; y < height; ++y) {
    for (int64_t x = 0; x < width; ++x) relax(x, y, 1);
  }
  for (int64_t y = height - 1; y >= 0; --y) {
    for (int64_t x = width - 1; x >= 0; --x) relax(x, y, -1);
  }
  return distances;
}

}  // namespace elliptical::data
