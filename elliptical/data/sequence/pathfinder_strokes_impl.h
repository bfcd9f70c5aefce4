// SPDX-License-Identifier: MIT
//
// The parts that pictures of Pathfinder are pasted from. All are drawn larger, by the antialias
// scale of 2, and made smaller with Lanczos, as the public generator does. Since directions are
// whole degrees or lead to one of few end points, there are few of them.
#pragma once

#include <cstdint>
#include <vector>

#include "elliptical/data/sequence/pathfinder.h"

namespace elliptical::data {

/// A square of numbers whose middle pixel is what it is placed by.
struct PathfinderPatch {
  int64_t radius = 0;
  std::vector<float> values;  ///< (2 radius + 1) squared
  float at(int64_t y, int64_t x) const {
    return values[static_cast<size_t>((y + radius) * (2 * radius + 1) + x + radius)];
  }
};

struct PathfinderStroke {
  double angle;
  PathfinderPatch line;                  ///< 0 to 1
  PathfinderPatch mask;                  ///< the line widened by the margin, 0 to 1
  std::vector<PathfinderPoint> covered;  ///< what the mask covers fully, from its middle
};

/// The point at distance r in a direction, rounded up as the public generator does.
PathfinderPoint moved(const PathfinderPoint& from, double angle, double distance);

/// A stroke from the middle of the patch into a direction.
PathfinderStroke draw_stroke(const PathfinderOptions& options, double angle);

/// A disc, 0 to 1.
PathfinderPatch draw_marker(const PathfinderOptions& options);

/// Where a disc of that radius has pixels.
std::vector<PathfinderPoint> disc_points(double radius);

}  // namespace elliptical::data
