// SPDX-License-Identifier: MIT
//
// Pictures of Pathfinder (Linsley et al. 2018; Tay et al. 2021): two dashed curves ("snakes") wind
// between shorter ones, and two discs mark two ends. The label is 1 when both are on the same snake.
//
// A snake is a chain of straight strokes. From a pivot, one margin behind the free end of the last
// stroke, the next stroke is drawn towards an end point on the circle around it, one pixel of arc an
// end point, with weight
//     cos^2(min(continuity * turn, pi / 2)) * (1 - occupied)
// `occupied` is what earlier strokes, widened by the margin, take up. The stroke is accepted when
// its own surroundings and what is occupied nowhere add up to 1.8. Both snakes of a picture grow in
// turns; when one can not, the pair begins anew. Distractors grow alike, and one that can not is
// done without. Coordinates are whole pixels, (y, x); angles have y downwards.
//
// A picture is a function of a key. It keeps the list of its strokes, so that the label can be
// proved.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "elliptical/base/random.h"

namespace elliptical::data {

struct PathfinderPoint {
  int64_t y = 0, x = 0;
  bool operator==(const PathfinderPoint&) const = default;
};

/// Lengths are in pixels of the picture. The defaults are Pathfinder-32 of Long Range Arena, hard.
struct PathfinderOptions {
  int64_t side = 32;
  int64_t padding = 1;          ///< a frame that strokes stay out of
  int64_t contour_length = 14;  ///< strokes of a snake; 9 and 6 are easier
  int64_t segment_length = 2;
  double thickness = 0.5;
  int64_t margin = 1;
  int64_t seed_distance = 7;  ///< of the beginnings of both snakes
  double marker_radius = 1.5;
  double continuity = 1;
  double snake_contrast = 2, paddle_contrast = 0.75;
  int64_t segment_retries = 2, distractor_retries = 4;

  int64_t distractor_length() const { return contour_length / 3; }
  int64_t num_distractors() const { return 20 / distractor_length(); }
};

/// Pathfinder-128, the size of Path-X. Long Range Arena did not publish the parameters of its own:
/// these are the ones that the public generator has for pictures of its smaller size.
PathfinderOptions pathfinder_128();

struct PathfinderSnake {
  PathfinderPoint tail;               ///< where the first stroke begins
  std::vector<PathfinderPoint> ends;  ///< where each stroke ends
  PathfinderPoint tip() const { return ends.back(); }
};

struct PathfinderPicture {
  int64_t side = 0;
  std::vector<uint8_t> pixels;  ///< (side, side), 0 to 255
  int64_t label = 0;
  std::array<PathfinderPoint, 2> markers;  ///< a tail and a tip
  std::array<PathfinderSnake, 2> snakes;
  std::vector<PathfinderSnake> distractors;
  int64_t num_restarts = 0;  ///< pairs that were given up before
};

/// The label of the picture of a key, without making it.
int64_t pathfinder_label(RandomKey key);

class PathfinderGenerator {
 public:
  /// Draws every stroke that can occur once. Throws std::invalid_argument for sizes that make no
  /// sense.
  explicit PathfinderGenerator(const PathfinderOptions& options = {});
  ~PathfinderGenerator();
  PathfinderGenerator(const PathfinderGenerator&) = delete;
  PathfinderGenerator& operator=(const PathfinderGenerator&) = delete;

  const PathfinderOptions& options() const { return options_; }
  /// May be called from any number of threads.
  PathfinderPicture make(RandomKey key) const;

 private:
  PathfinderOptions options_;
  struct Strokes;
  std::unique_ptr<const Strokes> strokes_;
  friend class PathfinderDrawing;
};

}  // namespace elliptical::data
