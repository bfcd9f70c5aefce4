// SPDX-License-Identifier: MIT
#include "elliptical/data/image/small_pictures.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

#include "elliptical/base/errors.h"
#include "elliptical/base/random.h"

namespace elliptical::data {
namespace {

constexpr double kPi = std::numbers::pi;

struct Point {
  double x, y;
};

double length(Point p) { return std::hypot(p.x, p.y); }

/// Distance in the maximum norm.
double reach(Point p) { return std::max(std::abs(p.x), std::abs(p.y)); }

bool in_triangle(Point p) { return p.y < 0.6 && p.y > std::abs(p.x) * std::numbers::sqrt3 - 1.0; }

bool in_cross(Point p) { return reach(p) < 0.95 && std::min(std::abs(p.x), std::abs(p.y)) < 0.3; }

/// Five points: the radius swings between 1 and 0.42.
bool in_star(Point p) {
  const double turn = (std::atan2(p.y, p.x) / (2 * kPi) + 1) * 5;
  return length(p) < 1 - 1.16 * std::abs(turn - std::round(turn));
}

bool in_crescent(Point p) { return length(p) < 1 && length({p.x - 0.5, p.y}) > 0.8; }

bool in_bars(Point p) {
  return reach(p) < 0.9 && std::abs(std::fmod(p.y + 3.0, 0.72) - 0.36) < 0.18;
}

bool in_dots(Point p) { return length({std::abs(p.x) - 0.5, std::abs(p.y) - 0.5}) < 0.36; }

struct Shape {
  const char* name;
  bool (*contains)(Point);  ///< within the square from -1 to 1
};

constexpr std::array<Shape, 10> kShapes = {{
    {"disc", [](Point p) { return length(p) < 0.9; }},
    {"ring", [](Point p) { return length(p) < 0.9 && length(p) > 0.45; }},
    {"square", [](Point p) { return reach(p) < 0.8; }},
    {"frame", [](Point p) { return reach(p) < 0.8 && reach(p) > 0.4; }},
    {"triangle", in_triangle},
    {"cross", in_cross},
    {"star", in_star},
    {"crescent", in_crescent},
    {"bars", in_bars},
    {"dots", in_dots},
}};

using Colour = std::array<double, 3>;  // 0 to 1

/// Hue in turns, at the given lightness of the strongest and the weakest channel.
Colour colour_of_hue(double hue, double strongest, double weakest) {
  Colour colour;
  for (int i = 0; i < 3; ++i) {
    const double phase = std::cos(2 * kPi * (hue - i / 3.0));
    colour[i] = weakest + (strongest - weakest) * std::clamp(0.5 + phase, 0.0, 1.0);
  }
  return colour;
}

double between(RandomStream& random, double low, double high) {
  return low + (high - low) * random.uniform();
}

/// Everything about a picture that is drawn once.
struct Scene {
  Colour shape, ground, pattern;
  Point center;         ///< in sides of the picture
  double radius, turn;  ///< of the shape; radians
  Point wave;           ///< of the pattern: waves over the side, with direction
  double wave_phase, noise;

  Scene(int64_t label, RandomStream& random) {
    const bool has_own_hue = random.below(2) == 0;
    const double own_hue = static_cast<double>(label) / kShapes.size() + between(random, -.04, .04);
    const double any_hue = random.uniform();
    shape = colour_of_hue(has_own_hue ? own_hue : any_hue, between(random, 0.75, 1.0), 0.15);
    ground = colour_of_hue(random.uniform(), between(random, 0.2, 0.45), 0.1);
    pattern = colour_of_hue(random.uniform(), between(random, 0.2, 0.5), 0.1);
    radius = between(random, 0.15, 0.3);
    const double margin = radius;
    center = {between(random, margin, 1 - margin), between(random, margin, 1 - margin)};
    turn = between(random, -0.5, 0.5);
    const double direction = 2 * kPi * random.uniform(), waves = between(random, 2, 7);
    wave = {waves * std::cos(direction), waves * std::sin(direction)};
    wave_phase = random.uniform();
    noise = between(random, 0.02, 0.1);
  }

  /// The colour at a point, in sides of the picture.
  Colour at(Point p, const Shape& what) const {
    const double dx = (p.x - center.x) / radius, dy = (p.y - center.y) / radius;
    if (std::max(std::abs(dx), std::abs(dy)) < 1.5) {
      const double cosine = std::cos(turn), sine = std::sin(turn);
      if (what.contains({cosine * dx + sine * dy, cosine * dy - sine * dx})) return shape;
    }
    const double phase = wave.x * p.x + wave.y * p.y + wave_phase;
    const double mix = 0.5 + 0.5 * std::sin(2 * kPi * phase);
    Colour colour;
    for (int i = 0; i < 3; ++i) colour[i] = ground[i] + mix * (pattern[i] - ground[i]);
    return colour;
  }
};

std::vector<std::string> shape_names() {
  std::vector<std::string> names;
  for (const Shape& shape : kShapes) names.emplace_back(shape.name);
  return names;
}

}  // namespace

SmallPictures::SmallPictures(Split split, const SmallPicturesOptions& options)
    : ImageSet(std::string(kSmallPictures), shape_names()), split_(split), options_(options) {
  if (options.side < 8 || options.side > 4096) {
    throw ConfigError("small-pictures: side must be 8 to 4096, got " +
                      std::to_string(options.side));
  }
}

int64_t SmallPictures::size() const {
  return split_ == Split::kTrain ? options_.train_pictures : options_.eval_pictures;
}

std::string SmallPictures::origin(int64_t index) const {
  return name() + ", " + to_string(split_) + " picture " + std::to_string(index);
}

std::map<std::string, std::string> SmallPictures::fingerprint() const {
  return {{to_string(split_), "version 1, seed " + std::to_string(options_.seed) + ", side " +
                                  std::to_string(options_.side) + ", " + std::to_string(size()) +
                                  " pictures"}};
}

Image SmallPictures::read(int64_t index) const {
  RandomStream random(RandomKey(options_.seed)
                          .derive(kSmallPictures)
                          .derive(static_cast<uint64_t>(split_))
                          .derive(static_cast<uint64_t>(index)));
  const Shape& shape = kShapes[label(index)];
  const Scene scene(label(index), random);
  const int64_t side = options_.side;
  Image image(side, side);
  for (int64_t y = 0; y < side; ++y) {
    for (int64_t x = 0; x < side; ++x) {
      Colour sum = {};
      for (const double dy : {0.25, 0.75}) {  // four samples a pixel smooth the edges
        for (const double dx : {0.25, 0.75}) {
          const Point p = {(static_cast<double>(x) + dx) / static_cast<double>(side),
                           (static_cast<double>(y) + dy) / static_cast<double>(side)};
          const Colour colour = scene.at(p, shape);
          for (int i = 0; i < 3; ++i) sum[i] += colour[i] / 4;
        }
      }
      for (int i = 0; i < 3; ++i) {
        const double value = sum[i] + scene.noise * between(random, -1, 1);
        image.at(y, x)[i] = static_cast<uint8_t>(std::clamp(value, 0.0, 1.0) * 255 + 0.5);
      }
    }
  }
  return image;
}

}  // namespace elliptical::data
