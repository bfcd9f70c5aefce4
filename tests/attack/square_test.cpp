// SPDX-License-Identifier: MIT
#include "elliptical/attack/square.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include "tests/attack/small_models.h"

namespace elliptical::attack::testing {
namespace {

TEST(Square, Sides) {
  const SquareOptions options;
  const std::vector<int64_t> queries = {0,   10,   11,   50,   51,   200,  201,  500,
                                        501, 1000, 1001, 2000, 2001, 4000, 4001, 4999};
  const std::vector<int64_t> large = {200, 142, 100, 71, 50, 35, 25, 18};
  const std::vector<int64_t> small = {29, 20, 14, 10, 7, 5, 4, 3};
  for (size_t i = 0; i < queries.size(); ++i) {
    // Two queries a level: its last, and the first of the next.
    const size_t level = (i + 1) / 2 - (i % 2 == 1 ? 1 : 0);
    EXPECT_EQ(square_side(queries[i], 224, 224, options), large[level]) << queries[i];
    EXPECT_EQ(square_side(queries[i], 32, 32, options), small[level]) << queries[i];
  }
  SquareOptions rescaled;
  rescaled.rescale = true;
  rescaled.queries = 100;
  EXPECT_EQ(square_side(0, 224, 224, rescaled), 200);
  EXPECT_EQ(square_side(1, 224, 224, rescaled), 100);  // as query 100 of 10000
  EXPECT_EQ(square_side(70, 224, 224, rescaled), 13);  // 1/256 after 6000
  EXPECT_EQ(square_side(99, 224, 224, rescaled), 9);   // 1/512 after 8000
  EXPECT_EQ(square_side(4999, 2, 2, options), 1);
}

/// A model that no square can break, and that remembers what it was asked.
struct Stubborn {
  at::Tensor W = wave({5, 3, 8, 8}, 0.3, at::kDouble);
  LogitsFn linear = linear_model(W, at::tensor({100.0, 0.0, 0.0, 0.0, 0.0}, at::kDouble));
  std::vector<at::Tensor> margins, pictures;
  LogitsFn model = [this](const at::Tensor& x) {
    at::Tensor z = linear(x);
    pictures.push_back(x);
    margins.push_back(margin(z, at::zeros({x.size(0)}, at::kLong)));
    return z;
  };
};

TEST(Square, KeepsTheLowestMarginAndEveryNumberAtEps) {
  Stubborn stubborn;
  const at::Tensor x = 0.5 + 0.1 * wave({3, 3, 8, 8}, 0.9, at::kDouble);
  Pictures pictures = with_keys({x, at::zeros({3}, at::kLong)});
  Findings findings;
  const double eps = 0.05;
  const Problem problem{stubborn.model, pictures, FeasibleSet(x, pixel_threat(eps)), findings};
  SquareOptions options;
  options.queries = 300;
  const SquareResult result = square_search(problem, options);
  EXPECT_FALSE(result.broken.any().item<bool>());
  EXPECT_EQ(stubborn.margins.size(), 301) << "one query for the stripes and one a square";
  EXPECT_TRUE(at::equal(result.margin, std::get<0>(at::stack(stubborn.margins).min(0))));
  EXPECT_TRUE(at::equal(result.margin, margin(stubborn.linear(result.x), pictures.y)));
  // Rounding of x + eps.
  EXPECT_LE(((result.x - x).abs() - eps).abs().max().item<double>(), 1e-15);
  EXPECT_TRUE((result.margin < stubborn.margins[0]).all().item<bool>());

  const at::Tensor stripes = (stubborn.pictures[0] - x) > 0;
  EXPECT_TRUE(at::equal(stripes, stripes.narrow(2, 0, 1).expand_as(stripes)));
  EXPECT_FALSE(at::equal(stripes[0], stripes[1])) << "pictures draw for themselves";
  // A query differs from the best picture so far in a square, the same in all channels or in none.
  const at::Tensor changed = (stubborn.pictures[1] != stubborn.pictures[0]).any(1);  // (n, H, W)
  EXPECT_LE(changed.flatten(1).sum(1).max().item<int64_t>(), 7 * 7);
}

TEST(Square, DoesNotTouchWhatIsWrongAlready) {
  const LogitsFn net = trained_net();
  Labelled data = generated_pictures(20);
  data.y = (plain_logits(net, data.x).argmax(1) + 1) % 5;
  int64_t num_passes = 0;
  const LogitsFn counting = [&](const at::Tensor& x) {
    ++num_passes;
    return net(x);
  };
  const at::Tensor x =
      make_attack(cheap_options("square"))->perturb(counting, with_keys(data), pixel_threat(0.1));
  EXPECT_TRUE(at::equal(x, data.x));
  EXPECT_EQ(num_passes, 1) << "for the clean logits";
}

TEST(Square, BreaksPicturesWithoutAGradient) {
  const LogitsFn net = trained_net();
  const LogitsFn deaf = [&](const at::Tensor& x) { return net(x.detach()); };
  const Labelled data = generated_pictures(40);
  const at::Tensor x = make_attack(cheap_options("square", {"queries=300"}))
                           ->perturb(deaf, with_keys(data), pixel_threat(0.1));
  EXPECT_LE(num_correct(net, x, data.y), num_correct(net, data.x, data.y) / 2);
}

}  // namespace
}  // namespace elliptical::attack::testing
