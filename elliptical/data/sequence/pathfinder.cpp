// SPDX-License-Identifier: MIT
#include "elliptical/data/sequence/pathfinder.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <optional>
#include <stdexcept>
#include <string>

#include "elliptical/data/sequence/pathfinder_strokes_impl.h"

namespace elliptical::data {
namespace {

constexpr double kPi = std::numbers::pi;
constexpr float kFull = 1.8F;          ///< more than this is an overlap
constexpr float kTaken = 0.3F;         ///< a pixel with more is not free to begin on
constexpr double kLeastWeight = 1e-4;  ///< of all end points together
constexpr double kLeastFree = 0.01;    ///< of the pixels, for a distractor to begin
constexpr int64_t kMaxRestarts = 10'000;

double wrapped_turn(double a, double b) {
  const double turn = std::abs(a - b);
  return std::min(turn, 2 * kPi - turn);
}

/// The first thing that is drawn of a picture.
int64_t draw_label(RandomStream& random) { return static_cast<int64_t>(random.below(2)); }

}  // namespace

/// Every stroke that occurs.
struct PathfinderGenerator::Strokes {
  std::vector<PathfinderStroke> seeds;  ///< -180 to 179 degrees
  std::vector<PathfinderPoint> ends;    ///< of further strokes, from their pivot
  std::vector<double> turned;           ///< their directions from the pivot
  std::vector<PathfinderStroke> back;   ///< from each end point back towards the pivot
  PathfinderPatch marker;
  std::vector<PathfinderPoint> margin;
};

/// A picture while it is made.
class PathfinderDrawing {
 public:
  PathfinderDrawing(const PathfinderGenerator& generator, RandomKey key)
      : options_(generator.options_),
        strokes_(*generator.strokes_),
        side_(options_.side),
        random_(key) {}

  PathfinderPicture make() {
    PathfinderPicture picture;
    picture.side = side_;
    picture.label = draw_label(random_);
    while (!grow_pair(picture.snakes)) {
      if (++picture.num_restarts == kMaxRestarts) {
        throw std::logic_error("pathfinder: no two snakes fit into the picture");
      }
    }
    add_distractors(picture.distractors);
    const size_t first = random_.below(2);
    const size_t second = picture.label == 1 ? first : 1 - first;
    picture.markers = {picture.snakes[first].tail, picture.snakes[second].tip()};
    for (const PathfinderPoint& marker : picture.markers) {
      paste(strokes_.marker, marker, 1, layer_);
    }
    picture.pixels = to_bytes();
    return picture;
  }

 private:
  using Layer = std::vector<float>;

  /// The growing end of a snake.
  struct Head {
    PathfinderPoint pivot;
    double angle = 0;
    // What the last stroke takes up counts for others from the next stroke of its own snake on.
    const PathfinderPatch* mask = nullptr;
    PathfinderPoint mask_place;
  };

  bool is_inside(const PathfinderPoint& p) const {
    return p.y >= 0 && p.x >= 0 && p.y < side_ && p.x < side_;
  }
  size_t place(const PathfinderPoint& p) const { return static_cast<size_t>(p.y * side_ + p.x); }

  /// Calls `use(pixel, value)` for the part of a patch that is inside.
  template <class Use>
  void for_patch(const PathfinderPatch& patch, const PathfinderPoint& at, Use use) const {
    const int64_t top = std::max<int64_t>(-patch.radius, -at.y);
    const int64_t bottom = std::min(patch.radius, side_ - 1 - at.y);
    const int64_t left = std::max<int64_t>(-patch.radius, -at.x);
    const int64_t right = std::min(patch.radius, side_ - 1 - at.x);
    for (int64_t y = top; y <= bottom; ++y) {
      for (int64_t x = left; x <= right; ++x) {
        use(place({at.y + y, at.x + x}), patch.at(y, x));
      }
    }
  }

  void paste(const PathfinderPatch& patch,
             const PathfinderPoint& at,
             double contrast,
             Layer& layer) const {
    const auto factor = static_cast<float>(contrast);
    for_patch(patch, at, [&](size_t pixel, float value) {
      layer[pixel] = std::max(layer[pixel], factor * value);
    });
  }

  double random_degree() { return (static_cast<double>(random_.below(360)) - 180) * kPi / 180; }

  const PathfinderStroke& random_seed() { return strokes_.seeds[random_.below(360)]; }

  /// Where the pivot of a stroke that begins at `tail` is; nothing when it leaves the window.
  std::optional<PathfinderPoint> pivot_of(const PathfinderPoint& tail, double angle) const {
    const auto length = static_cast<double>(options_.segment_length);
    const PathfinderPoint head = moved(tail, angle, length);
    const double back = angle < 0 ? angle + kPi : angle - kPi;
    const PathfinderPoint pivot = moved(head, back, length + static_cast<double>(options_.margin));
    if (!is_inside(head) || !is_inside(pivot)) return std::nullopt;
    return pivot;
  }

  void clear() {
    layer_.assign(static_cast<size_t>(side_ * side_), 0);
    occupied_ = layer_;
    set_frame(occupied_, options_.padding);
  }

  void set_frame(Layer& layer, int64_t width) const {
    for (int64_t y = 0; y < side_; ++y) {
      for (int64_t x = 0; x < side_; ++x) {
        const int64_t border = std::min({y, x, side_ - 1 - y, side_ - 1 - x});
        if (border < width) layer[place({y, x})] = 1;
      }
    }
  }

  /// A random pixel on which a stroke may begin: nothing that its mask covers is taken in `taken`.
  std::optional<PathfinderPoint> free_tail(const PathfinderStroke& stroke, const Layer& taken) {
    std::vector<PathfinderPoint> free;
    for (int64_t y = 0; y < side_; ++y) {
      for (int64_t x = 0; x < side_; ++x) {
        const auto is_free = [&](const PathfinderPoint& p) {
          const PathfinderPoint at = {y + p.y, x + p.x};
          return !is_inside(at) || taken[place(at)] <= kTaken;
        };
        if (std::all_of(stroke.covered.begin(), stroke.covered.end(), is_free)) {
          free.push_back({y, x});
        }
      }
    }
    if (free.empty()) return std::nullopt;
    return free[random_.below(free.size())];
  }

  /// Draws the first stroke of a snake.
  Head begin(const PathfinderStroke& stroke,
             const PathfinderPoint& tail,
             const PathfinderPoint& pivot,
             double contrast,
             PathfinderSnake& snake) {
    paste(stroke.line, tail, contrast, layer_);
    snake = {.tail = tail,
             .ends = {moved(tail, stroke.angle, static_cast<double>(options_.segment_length))}};
    return {pivot, stroke.angle, &stroke.mask, tail};
  }

  /// The first strokes of both snakes. False: a place for them was not found.
  bool begin_pair(std::array<PathfinderSnake, 2>& snakes, std::array<Head, 2>& heads) {
    const double contrast = options_.snake_contrast * options_.paddle_contrast;
    // The first one begins in the middle, so that both have room.
    Layer middle = occupied_;
    set_frame(middle, 2 * options_.seed_distance);
    for (int64_t snake = 0; snake < 2; ++snake) {
      bool is_placed = false;
      for (int64_t trial = 0; trial <= options_.segment_retries && !is_placed; ++trial) {
        const PathfinderStroke& stroke = random_seed();
        std::optional<PathfinderPoint> tail;
        if (snake == 0) {
          tail = free_tail(stroke, middle);
          if (!tail) return false;
        } else {
          const double around = random_degree();
          const auto distance = static_cast<double>(options_.seed_distance);
          tail = PathfinderPoint{snakes[0].tail.y + std::lround(distance * std::sin(around)),
                                 snakes[0].tail.x + std::lround(distance * std::cos(around))};
        }
        const auto pivot = pivot_of(*tail, stroke.angle);
        if (!pivot) continue;
        heads[snake] = begin(stroke, *tail, *pivot, contrast, snakes[snake]);
        is_placed = true;
      }
      if (!is_placed) return false;
    }
    return true;
  }

  bool grow_pair(std::array<PathfinderSnake, 2>& snakes) {
    clear();
    std::array<Head, 2> heads;
    if (!begin_pair(snakes, heads)) return false;
    const double contrast = options_.snake_contrast * options_.paddle_contrast;
    for (int64_t i = 1; i < options_.contour_length; ++i) {
      for (size_t snake = 0; snake < 2; ++snake) {
        if (!extend(heads[snake], contrast, snakes[snake])) return false;
      }
    }
    for (const Head& head : heads) paste(*head.mask, head.mask_place, 1, occupied_);
    return true;
  }

  /// How much of a pixel is occupied, or of one within the margin.
  float occupied_near(const PathfinderPoint& p) const {
    float most = 0;
    for (const PathfinderPoint& q : strokes_.margin) {
      const PathfinderPoint at = {p.y + q.y, p.x + q.x};
      if (is_inside(at)) most = std::max(most, occupied_[place(at)]);
    }
    return most;
  }

  bool overlaps(const PathfinderPatch& mask, const PathfinderPoint& at) const {
    bool found = false;
    for_patch(mask, at, [&](size_t pixel, float value) {
      found = found || occupied_[pixel] + value >= kFull;
    });
    return found;
  }

  /// One more stroke. False: there is no way on.
  bool extend(Head& head, double contrast, PathfinderSnake& snake) {
    const PathfinderPoint pivot = moved(
        head.pivot, head.angle, static_cast<double>(options_.segment_length + 2 * options_.margin));
    std::vector<double> sums(strokes_.ends.size());
    double sum = 0;
    for (size_t i = 0; i < strokes_.ends.size(); ++i) {
      const PathfinderPoint end = {pivot.y + strokes_.ends[i].y, pivot.x + strokes_.ends[i].x};
      if (is_inside(end)) {
        const double turn =
            std::min(options_.continuity * wrapped_turn(strokes_.turned[i], head.angle), kPi / 2);
        const double weight = std::cos(turn) * std::cos(turn);
        sum += weight * std::max(0.0, 1 - static_cast<double>(occupied_near(end)));
      }
      sums[i] = sum;
    }
    if (sum < kLeastWeight) return false;
    for (int64_t trial = 0; trial <= options_.segment_retries; ++trial) {
      const double drawn = random_.uniform() * sum;
      const auto choice = std::upper_bound(sums.begin(), sums.end(), drawn);
      const size_t i = std::min<size_t>(choice - sums.begin(), sums.size() - 1);
      const PathfinderPoint end = {pivot.y + strokes_.ends[i].y, pivot.x + strokes_.ends[i].x};
      const PathfinderStroke& stroke = strokes_.back[i];
      if (overlaps(stroke.mask, end)) continue;
      paste(stroke.line, end, contrast, layer_);
      paste(*head.mask, head.mask_place, 1, occupied_);
      head = {pivot, strokes_.turned[i], &stroke.mask, end};
      snake.ends.push_back(end);
      return true;
    }
    return false;
  }

  bool grow_distractor(PathfinderSnake& snake) {
    const auto is_free = [](float value) { return value <= kTaken; };
    const auto free = std::count_if(occupied_.begin(), occupied_.end(), is_free);
    if (static_cast<double>(free) < kLeastFree * static_cast<double>(side_ * side_)) return false;
    Layer taken = occupied_;
    set_frame(taken, 1);
    for (int64_t trial = 0; trial <= options_.segment_retries; ++trial) {
      const PathfinderStroke& stroke = random_seed();
      const auto tail = free_tail(stroke, taken);
      if (!tail) return false;
      const auto pivot = pivot_of(*tail, stroke.angle);
      if (!pivot) continue;
      Head head = begin(stroke, *tail, *pivot, options_.snake_contrast, snake);
      for (int64_t i = 1; i < options_.distractor_length(); ++i) {
        if (!extend(head, options_.snake_contrast, snake)) return false;
      }
      paste(*head.mask, head.mask_place, 1, occupied_);
      return true;
    }
    return false;
  }

  void add_distractors(std::vector<PathfinderSnake>& distractors) {
    for (int64_t i = 0; i < options_.num_distractors(); ++i) {
      for (int64_t trial = 0; trial <= options_.distractor_retries; ++trial) {
        const Layer layer = layer_, occupied = occupied_;
        PathfinderSnake snake;
        if (grow_distractor(snake)) {
          distractors.push_back(std::move(snake));
          break;
        }
        layer_ = layer;  // as if it had not been tried
        occupied_ = occupied;
      }
    }
  }

  /// The darkest pixel becomes 0, the brightest 255.
  std::vector<uint8_t> to_bytes() const {
    const auto range = std::minmax_element(layer_.begin(), layer_.end());
    const float low = *range.first, span = *range.second - low;
    std::vector<uint8_t> bytes(layer_.size());
    std::transform(layer_.begin(), layer_.end(), bytes.begin(), [&](float value) {
      return static_cast<uint8_t>((value - low) / span * 255 + 0.5F);
    });
    return bytes;
  }

  const PathfinderOptions& options_;
  const PathfinderGenerator::Strokes& strokes_;
  int64_t side_;
  RandomStream random_;
  Layer layer_, occupied_;
};

int64_t pathfinder_label(RandomKey key) {
  RandomStream random(key);
  return draw_label(random);
}

PathfinderOptions pathfinder_128() {
  PathfinderOptions options;
  options.side = 128;
  options.segment_length = 5;
  options.thickness = 1.5;
  options.margin = 3;
  options.seed_distance = 20;
  options.marker_radius = 3;
  return options;
}

PathfinderGenerator::PathfinderGenerator(const PathfinderOptions& options) : options_(options) {
  const bool valid = options.side >= 16 && options.side <= 1024 && options.contour_length >= 3 &&
                     options.contour_length <= 60 && options.segment_length >= 1 &&
                     options.margin >= 1 && 4 * options.seed_distance < options.side;
  if (!valid) {
    throw std::invalid_argument(
        "pathfinder: side must be 16 to 1024, contour_length 3 to 60, seed_distance below a "
        "quarter of the side, got " +
        std::to_string(options.side) + ", " + std::to_string(options.contour_length) + ", " +
        std::to_string(options.seed_distance));
  }
  auto strokes = std::make_unique<Strokes>();
  for (int degree = -180; degree < 180; ++degree) {
    strokes->seeds.push_back(draw_stroke(options, degree * kPi / 180));
  }
  const auto radius = static_cast<double>(options.segment_length + options.margin);
  const double step = 1 / radius;  // one pixel of arc
  for (double angle = 0; angle < 2 * kPi; angle += step) {
    const PathfinderPoint end = {static_cast<int64_t>(std::floor(radius * std::sin(angle))),
                                 static_cast<int64_t>(std::floor(radius * std::cos(angle)))};
    if (std::find(strokes->ends.begin(), strokes->ends.end(), end) != strokes->ends.end()) continue;
    const double direction = std::atan2(static_cast<double>(end.y), static_cast<double>(end.x));
    strokes->ends.push_back(end);
    strokes->turned.push_back(direction);
    strokes->back.push_back(
        draw_stroke(options, direction < 0 ? direction + kPi : direction - kPi));
  }
  strokes->marker = draw_marker(options);
  strokes->margin = disc_points(static_cast<double>(options.margin));
  strokes_ = std::move(strokes);
}

PathfinderGenerator::~PathfinderGenerator() = default;

PathfinderPicture PathfinderGenerator::make(RandomKey key) const {
  return PathfinderDrawing(*this, key).make();
}

}  // namespace elliptical::data
