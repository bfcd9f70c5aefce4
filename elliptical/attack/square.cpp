// SPDX-License-Identifier: MIT
#include "elliptical/attack/square.h"

#include <torch/torch.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "elliptical/attack/survivors_impl.h"
#include "elliptical/base/option_limits.h"

namespace elliptical::attack {
namespace {

class Square : public Attack {
 public:
  explicit Square(const SquareOptions& options) : options_(options) {}
  int64_t max_passes(int64_t) const override { return options_.queries + 1; }

 protected:
  at::Tensor search(const Problem& problem) const override {
    return try_in_turn(problem, 1, [this](int64_t, const Problem& survivors) {
      SquareResult result = square_search(survivors, options_);
      return Attempt{result.x, result.broken};
    });
  }

 private:
  SquareOptions options_;
};

/// (n, length) bool: which rows, or columns, of each picture the square covers.
at::Tensor covered(const std::vector<int64_t>& first, int64_t side, int64_t length) {
  const at::Tensor start = at::tensor(first).unsqueeze(1), position = at::arange(length);
  return (position >= start) & (position < start + side);
}

/// For each picture a square at a place of its own in the colours of a corner of the ball.
at::Tensor with_square(const at::Tensor& x,
                       const FeasibleSet& set,
                       const PictureKeys& keys,
                       int64_t side) {
  const int64_t C = x.size(1), H = x.size(2), W = x.size(3);
  std::vector<int64_t> top, left;
  for (const RandomKey key : keys) {
    RandomStream random(key);
    // As in the reference the last place is never drawn.
    top.push_back(static_cast<int64_t>(random.uniform() * static_cast<double>(H - side)));
    left.push_back(static_cast<int64_t>(random.uniform() * static_cast<double>(W - side)));
  }
  const at::Tensor signs = draw_signs(derive(keys, "signs"), {C, 1, 1}, x.scalar_type());
  const at::Tensor inside =
      covered(top, side, H).view({-1, 1, H, 1}) & covered(left, side, W).view({-1, 1, 1, W});
  // x + 2 eps sign, projected, is a corner whatever x is in the ball.
  return at::where(inside, at::where(signs > 0, set.upper, set.lower), x);
}

}  // namespace

int64_t square_side(int64_t query, int64_t height, int64_t width, const SquareOptions& options) {
  // The area is halved after these queries, counted for 10000 of them when rescaled.
  constexpr std::array<int64_t, 9> kHalved = {10, 50, 200, 500, 1000, 2000, 4000, 6000, 8000};
  const int64_t position = options.rescale ? query * 10000 / options.queries : query;
  const size_t num_levels = options.rescale ? kHalved.size() : kHalved.size() - 2;
  double area = options.first_ratio * static_cast<double>(height * width);
  for (size_t i = 0; i < num_levels && position > kHalved[i]; ++i) area /= 2;
  const auto side = static_cast<int64_t>(std::nearbyint(std::sqrt(area)));
  return std::clamp<int64_t>(side, 1, std::min(height, width));
}

SquareResult square_search(const Problem& problem, const SquareOptions& options) {
  FeasibleSet set = problem.set;
  at::Tensor y = problem.pictures.y;
  PictureKeys keys = derive(problem.pictures.keys, "square");
  const int64_t n = set.x.size(0), C = set.x.size(1), H = set.x.size(2), W = set.x.size(3);
  const at::Tensor stripes = draw_signs(derive(keys, "stripes"), {C, 1, W}, set.x.scalar_type());
  at::Tensor x = at::where(stripes > 0, set.upper, set.lower);
  const at::Tensor first = plain_logits(problem.logits, x);
  at::Tensor best = margin(first, y);
  SquareResult result{x.clone(), best.clone(), is_correct(first, y).logical_not()};
  // x, best, y, keys and set are those of the pictures `place` that are still classified rightly.
  at::Tensor place = at::arange(n), broken = result.broken;
  for (int64_t query = 0; query < options.queries; ++query) {
    if (broken.any().item<bool>()) {
      const at::Tensor kept = broken.logical_not().nonzero().squeeze(1);
      set = set.select(kept);
      keys = select(keys, kept);
      for (at::Tensor* tensor : {&place, &y, &x, &best}) *tensor = tensor->index_select(0, kept);
    }
    if (place.numel() == 0) break;
    const at::Tensor candidate = with_square(x, set, derive(keys, static_cast<uint64_t>(query)),
                                             square_side(query, H, W, options));
    const at::Tensor z = plain_logits(problem.logits, candidate);
    const at::Tensor m = margin(z, y);
    broken = is_correct(z, y).logical_not();
    const at::Tensor accepted = (m < best) | broken;
    x = at::where(per_picture(accepted), candidate, x);
    best = at::where(accepted, m, best);
    result.broken.index_copy_(0, place, broken);
    // What is kept of a picture is written when it is left alone, and at the end.
    const at::Tensor done = broken.nonzero().squeeze(1);
    const at::Tensor places = place.index_select(0, done);
    result.x.index_copy_(0, places, x.index_select(0, done));
    result.margin.index_copy_(0, places, best.index_select(0, done));
  }
  result.x.index_copy_(0, place, x);
  result.margin.index_copy_(0, place, best);
  return result;
}

void SquareOptions::visit(FieldList& fields) {
  fields.add("queries", queries, "squares that are tried", between(1, kMostPasses));
  fields.add("first_ratio", first_ratio, "part of the picture that the first square covers",
             between(0, 1));
  fields.add("rescale", rescale,
             "shrink squares as if there were 10000 queries, whatever their number");
}

std::unique_ptr<Attack> make_square(const Options& options) {
  return std::make_unique<Square>(dynamic_cast<const SquareOptions&>(options));
}

}  // namespace elliptical::attack
