// SPDX-License-Identifier: MIT
#include "elliptical/attack/spsa.h"

#include <torch/torch.h>

#include <algorithm>
#include <cmath>

#include "elliptical/base/option_limits.h"

namespace elliptical::attack {
namespace {

constexpr double kBeta1 = 0.9, kBeta2 = 0.999, kAdamEps = 1e-8;

class Spsa : public Attack {
 public:
  explicit Spsa(const SpsaOptions& options) : options_(options) {}
  int64_t max_passes(int64_t) const override { return options_.steps * options_.pairs * 2; }

 protected:
  at::Tensor search(const Problem& problem) const override {
    const Pictures& pictures = problem.pictures;
    const FeasibleSet& set = problem.set;
    const auto loss = [&](const at::Tensor& points, const at::Tensor& owner) {
      return margin(plain_logits(problem.logits, points), pictures.y.index_select(0, owner));
    };
    const PictureKeys keys = derive(pictures.keys, "spsa");
    const at::Tensor noise =
        draw_uniform(derive(keys, "start"), pictures.x.sizes().slice(1), pictures.x.scalar_type());
    at::Tensor x = set.project(pictures.x + set.threat.eps * noise);
    at::Tensor mean = at::zeros_like(x), square = at::zeros_like(x);
    for (int64_t step = 1; step <= options_.steps; ++step) {
      const at::Tensor p = options_.point == SpsaPoint::kCurrent ? x : 2 * pictures.x;
      const at::Tensor g =
          spsa_gradient(loss, p, derive(keys, static_cast<uint64_t>(step)), options_);
      mean = kBeta1 * mean + (1 - kBeta1) * g;
      square = kBeta2 * square + (1 - kBeta2) * g * g;
      const auto t = static_cast<double>(step);
      const at::Tensor unbiased_root = (square / (1 - std::pow(kBeta2, t))).sqrt();
      x = set.project(x - options_.learning_rate / (1 - std::pow(kBeta1, t)) * mean /
                              (unbiased_root + kAdamEps));
    }
    return x;
  }

 private:
  SpsaOptions options_;
};

}  // namespace

std::string_view to_string(SpsaPoint point) {
  return point == SpsaPoint::kCurrent ? "current" : "twice-picture";
}

void SpsaOptions::visit(FieldList& fields) {
  fields.add("steps", steps, "steps of Adam", between(1, kMostPasses));
  fields.add("pairs", pairs, "pairs of evaluations a step", between(1, kMostPasses));
  fields.add("delta", delta, "distance of evaluations from the point", above(0));
  fields.add("learning_rate", learning_rate, "of Adam", above(0));
  fields.add_enum(
      "point", point, {"current", "twice-picture"},
      [](const std::string& name) {
        return name == "current" ? SpsaPoint::kCurrent : SpsaPoint::kTwicePicture;
      },
      "where the gradient is estimated; twice-picture: at 2 x, as released");
  fields.add("pass_size", pass_size, "pictures in one pass at most, for memory",
             between(2, kMostBatch));
}

at::Tensor spsa_gradient(
    const std::function<at::Tensor(const at::Tensor& points, const at::Tensor& owner)>& loss,
    const at::Tensor& p,
    const PictureKeys& keys,
    const SpsaOptions& options) {
  const int64_t num_rows = p.size(0) * options.pairs;  // row r: pair r % pairs of r / pairs
  at::Tensor g = at::zeros_like(p);
  for (int64_t first = 0; first < num_rows; first += options.pass_size / 2) {
    const int64_t last = std::min(num_rows, first + options.pass_size / 2);
    const at::Tensor rows = at::arange(first, last);
    const at::Tensor owner = rows.div(options.pairs, "floor");
    PictureKeys row_keys;
    for (int64_t row = first; row < last; ++row) {
      row_keys.push_back(keys[static_cast<size_t>(row / options.pairs)].derive(
          static_cast<uint64_t>(row % options.pairs)));
    }
    const at::Tensor v = draw_signs(row_keys, p.sizes().slice(1), p.scalar_type());
    const at::Tensor point = p.index_select(0, owner), shift = options.delta * v;
    const at::Tensor losses =
        loss(at::cat({point + shift, point - shift}), owner.repeat({2}));  // (2 rows)
    const at::Tensor difference =
        losses.narrow(0, 0, last - first) - losses.narrow(0, last - first, last - first);
    // Row by row in order, so that the sum of a picture does not depend on the others.
    g.index_add_(0, owner, difference.view({-1, 1, 1, 1}) * v);
  }
  return g / (2 * options.delta * static_cast<double>(options.pairs));
}

std::unique_ptr<Attack> make_spsa(const Options& options) {
  return std::make_unique<Spsa>(dynamic_cast<const SpsaOptions&>(options));
}

}  // namespace elliptical::attack
