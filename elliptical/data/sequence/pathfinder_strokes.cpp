// SPDX-License-Identifier: MIT
#include <algorithm>
#include <cmath>

#include "elliptical/data/image/resample.h"
#include "elliptical/data/sequence/pathfinder_strokes_impl.h"

namespace elliptical::data {
namespace {

constexpr int64_t kAntialias = 2;

/// Sets pixels of a large square to white; what is outside of it is left out.
class Canvas {
 public:
  explicit Canvas(int64_t side) : image_(side, side) {}

  void set(int64_t y, int64_t x) {
    if (y < 0 || x < 0 || y >= image_.height || x >= image_.width) return;
    std::fill_n(image_.at(y, x), Image::kChannels, uint8_t{255});
  }
  bool is_set(int64_t y, int64_t x) const { return image_.at(y, x)[0] != 0; }
  int64_t side() const { return image_.width; }

  /// Of width 1 the pixels nearest to the line; wider, those whose middle is within half the width.
  void line(const PathfinderPoint& from, const PathfinderPoint& to, int64_t width) {
    const auto dy = static_cast<double>(to.y - from.y), dx = static_cast<double>(to.x - from.x);
    const double length = std::hypot(dy, dx);
    if (width > 1 && length > 0) {
      for (int64_t y = 0; y < side(); ++y) {
        for (int64_t x = 0; x < side(); ++x) {
          const auto py = static_cast<double>(y - from.y), px = static_cast<double>(x - from.x);
          const double along = (py * dy + px * dx) / length, across = (py * dx - px * dy) / length;
          const bool is_inside = along > -0.5 && along < length + 0.5 &&
                                 std::abs(across) <= static_cast<double>(width) / 2;
          if (is_inside) set(y, x);
        }
      }
      return;
    }
    const int64_t steps = std::max(std::abs(to.y - from.y), std::abs(to.x - from.x));
    for (int64_t i = 0; i <= steps; ++i) {
      const double part = steps == 0 ? 0 : static_cast<double>(i) / static_cast<double>(steps);
      set(from.y + std::lround(part * dy), from.x + std::lround(part * dx));
    }
  }

  Canvas dilated(double radius) const {
    Canvas result(side());
    for (int64_t y = 0; y < side(); ++y) {
      for (int64_t x = 0; x < side(); ++x) {
        if (!is_set(y, x)) continue;
        for (const PathfinderPoint& p : disc_points(radius)) result.set(y + p.y, x + p.x);
      }
    }
    return result;
  }

  /// `radius` is that of the patch.
  PathfinderPatch shrunk(int64_t radius) const {
    const int64_t small_side = 2 * radius + 1;
    const Image small = resample(image_, small_side, small_side, Filter::kLanczos);
    PathfinderPatch patch{.radius = radius, .values = {}};
    for (int64_t i = 0; i < small_side * small_side; ++i) {
      patch.values.push_back(static_cast<float>(small.pixels[Image::kChannels * i]) / 255.0F);
    }
    return patch;
  }

 private:
  Image image_;
};

}  // namespace

PathfinderPoint moved(const PathfinderPoint& from, double angle, double distance) {
  return {
      static_cast<int64_t>(std::ceil(static_cast<double>(from.y) + distance * std::sin(angle))),
      static_cast<int64_t>(std::ceil(static_cast<double>(from.x) + distance * std::cos(angle)))};
}

std::vector<PathfinderPoint> disc_points(double radius) {
  std::vector<PathfinderPoint> points;
  const auto reach = static_cast<int64_t>(radius);
  for (int64_t y = -reach; y <= reach; ++y) {
    for (int64_t x = -reach; x <= reach; ++x) {
      if (static_cast<double>(y * y + x * x) <= radius * radius) points.push_back({y, x});
    }
  }
  return points;
}

PathfinderStroke draw_stroke(const PathfinderOptions& options, double angle) {
  const int64_t radius =
      options.segment_length + static_cast<int64_t>(std::ceil(options.thickness)) + options.margin;
  const int64_t middle = kAntialias * radius;
  Canvas large(2 * middle + 1);
  const PathfinderPoint center = {middle, middle};
  const auto length = static_cast<double>(options.segment_length * kAntialias);
  large.line(center, moved(center, angle, length),
             std::lround(options.thickness * static_cast<double>(kAntialias)));
  PathfinderStroke stroke{.angle = angle, .line = large.shrunk(radius), .mask = {}, .covered = {}};
  stroke.mask = large.dilated(static_cast<double>(options.margin * kAntialias)).shrunk(radius);
  for (int64_t y = -radius; y <= radius; ++y) {
    for (int64_t x = -radius; x <= radius; ++x) {
      if (stroke.mask.at(y, x) >= 1) stroke.covered.push_back({y, x});
    }
  }
  return stroke;
}

PathfinderPatch draw_marker(const PathfinderOptions& options) {
  // The large disc lies on the first of the kAntialias pixels that become the one in the middle, as
  // it does in a large picture as a whole.
  const int64_t radius = static_cast<int64_t>(std::ceil(options.marker_radius)) + 2;
  Canvas large(kAntialias * (2 * radius + 1));
  for (const PathfinderPoint& p :
       disc_points(options.marker_radius * static_cast<double>(kAntialias))) {
    large.set(kAntialias * radius + p.y, kAntialias * radius + p.x);
  }
  return large.shrunk(radius);
}

}  // namespace elliptical::data
