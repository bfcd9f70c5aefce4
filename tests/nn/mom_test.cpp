// SPDX-License-Identifier: MIT
//
// Median of means attention against loops over its definition, and what the median owes.
#include "elliptical/nn/attention/mom.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "elliptical/base/errors.h"
#include "elliptical/nn/attention/kde.h"
#include "tests/support/attention_stack.h"
#include "tests/support/attention_variants.h"
#include "tests/support/error_message.h"
#include "tests/support/golden_heads.h"
#include "tests/support/kernel_regression_loops.h"
#include "tests/support/max_difference.h"

namespace elliptical::nn::mom_test {
namespace {

using support::max_difference;
using support::wave;

constexpr int64_t B = 2, H = 3, N = 13, D = 4;
constexpr AttentionShape kTwoSided{.dim = H * D, .num_heads = H};
constexpr AttentionShape kCausal{.dim = H * D, .num_heads = H, .is_causal = true};

MomOptions with_blocks(int64_t num_blocks) {
  MomOptions options;
  options.num_blocks = num_blocks;
  return options;
}

std::vector<std::vector<int64_t>> blocks_of(const MomOptions& options, const Pass& c) {
  std::vector<std::vector<int64_t>> blocks;
  const RandomKey key(static_cast<uint64_t>(c.seed("mom blocks")));
  for (const at::Tensor& block : draw_key_blocks(options, N, key)) {
    blocks.emplace_back(block.data_ptr<int64_t>(), block.data_ptr<int64_t>() + block.numel());
  }
  return blocks;
}

/// Number of the upper median of the values that are there; none: -1.
int64_t median_of(const std::vector<std::pair<double, int64_t>>& values) {
  std::vector<std::pair<double, int64_t>> sorted = values;
  std::sort(sorted.begin(), sorted.end());
  return sorted.empty() ? -1 : sorted[sorted.size() / 2].second;
}

/// Mean kernel of a block over the keys that are seen; negative when none is.
double density(const at::Tensor& kernels, const std::vector<int64_t>& block) {
  double sum = 0.0, count = 0.0;
  for (const int64_t j : block) {
    const double kernel = kernels[j].item<double>();
    if (kernel == 0.0) continue;
    sum += kernel;
    count += 1.0;
  }
  return count > 0.0 ? sum / count : -1.0;
}

/// The block of the whole call, by the mean log kernel over all pairs of tokens.
int64_t global_by_loops(const at::Tensor& all_kernels,
                        const std::vector<std::vector<int64_t>>& blocks,
                        const std::optional<at::Tensor>& lengths) {
  std::vector<std::pair<double, int64_t>> means;
  for (size_t s = 0; s < blocks.size(); ++s) {
    double sum = 0.0, count = 0.0;
    for (int64_t b = 0; b < B; ++b) {
      const int64_t length = lengths ? (*lengths)[b].item<int64_t>() : N;
      for (int64_t h = 0; h < H; ++h) {
        for (int64_t n = 0; n < length; ++n) {
          for (const int64_t j : blocks[s]) {
            if (j >= length) continue;
            sum += std::log(all_kernels[b][h][n][j].item<double>());
            count += 1.0;
          }
        }
      }
    }
    if (count > 0.0) means.emplace_back(sum / count, static_cast<int64_t>(s));
  }
  return median_of(means);
}

struct ByLoops {
  at::Tensor out;             ///< (B, H, N, D)
  int64_t num_fallbacks = 0;  ///< queries that see no block
};

ByLoops mom_by_loops(const at::Tensor& q,
                     const at::Tensor& k,
                     const at::Tensor& v,
                     const MomOptions& options,
                     const Pass& pass) {
  support::KernelLoops loops{.kernel_scale = *options.kernel_scale,
                             .key_lengths = pass.key_lengths};
  const auto blocks = blocks_of(options, pass);
  const int64_t global =
      options.is_global ? global_by_loops(loops.kernels(q, k), blocks, pass.key_lengths) : -1;
  loops.is_causal = pass.is_causal;
  const at::Tensor kernels = loops.kernels(q, k);
  ByLoops result{torch::zeros({B, H, N, D}, torch::kDouble)};
  for (int64_t b = 0; b < B; ++b) {
    const int64_t length = pass.key_lengths ? (*pass.key_lengths)[b].item<int64_t>() : N;
    for (int64_t h = 0; h < H; ++h) {
      for (int64_t n = 0; n < length; ++n) {
        const at::Tensor row = kernels[b][h][n];
        std::vector<std::pair<double, int64_t>> densities;
        for (size_t s = 0; s < blocks.size(); ++s) {
          const double p = density(row, blocks[s]);
          const auto number = static_cast<int64_t>(s);
          if (p >= 0.0 && (global < 0 || global == number)) densities.emplace_back(p, number);
        }
        const int64_t chosen = median_of(densities);
        if (chosen < 0) {
          result.out[b][h][n].copy_(v[b][h][n]);
          ++result.num_fallbacks;
          continue;
        }
        double sum = 0.0;
        for (const int64_t j : blocks[static_cast<size_t>(chosen)]) {
          result.out[b][h][n] += row[j] * v[b][h][j].to(torch::kDouble);
          sum += row[j].item<double>();
        }
        result.out[b][h][n] /= sum;
      }
    }
  }
  return result;
}

TEST(Mom, GoldenOfBlocksOfOneKey) {
  const auto heads = support::golden_heads();
  const at::Tensor out =
      make_mom_mixer(with_blocks(4), support::golden_shape(false))->mix(heads, {}, nullptr)[0][0];
  const at::Tensor v = heads.v[0][0];  // for row 0 two keys are equally near
  EXPECT_TRUE(at::equal(out[1], v[3]));
  EXPECT_TRUE(at::equal(out[2], v[1]));
  EXPECT_TRUE(at::equal(out[3], v[3]));
}

TEST(Mom, IsTheRegressionOfItsDefinition) {
  const at::Tensor q = wave({B, H, N, D}), k = wave({B, H, N, D}, 0.31),
                   v = wave({B, H, N, D}, 1.3);
  int64_t num_fallbacks = 0;
  for (int variant = 0; variant < 16; ++variant) {
    const bool is_causal = variant & 1, padded = variant & 2;
    MomOptions options;
    options.kernel_scale = 0.8;
    options.is_overlapping = variant & 4;
    options.is_global = variant & 8;
    options.left_out = 0.4;
    options.lookahead = true;
    Pass pass;
    pass.is_causal = is_causal;
    pass.random = RandomKey(static_cast<uint64_t>(variant));
    if (padded) pass.key_lengths = torch::tensor({N, N - 9});
    const ByLoops expected = mom_by_loops(q, k, v, options, pass);
    num_fallbacks += expected.num_fallbacks;
    const auto mixer = make_mom_mixer(options, is_causal ? kCausal : kTwoSided);
    for (const auto type : {torch::kDouble, torch::kFloat}) {
      Trace trace;
      pass.trace = &trace;
      const at::Tensor out =
          mixer->mix({q.to(type), k.to(type), v.to(type), v.to(type)}, pass, nullptr);
      const double tolerance = type == torch::kDouble ? 1e-10 : 1e-5;
      EXPECT_LE(max_difference(out, expected.out), tolerance) << variant;
      const at::Tensor traced = trace.tensors.at("layers.0.attention").matmul(v.to(type));
      EXPECT_LE(max_difference(traced[0], expected.out[0]), tolerance) << variant;
    }
  }
  EXPECT_GT(num_fallbacks, 0) << "no query had to fall back on itself";
}

TEST(Mom, AMetricScalesDistances) {
  // A constant metric of 0.5 is half the kernel scale.
  const at::Tensor q = wave({B, H, N, D}), k = wave({B, H, N, D}, 0.31),
                   v = wave({B, H, N, D}, 1.3);
  for (const char* selection : {"selection=query", "selection=global"}) {
    const auto output = [&](std::vector<std::string> assignments) {
      const support::AttentionVariant mom{
          .name = "mom", .attention = "mom", .assignments = {selection}};
      Pass pass;
      pass.layer = 1;
      pass.previous_q = q;
      pass.previous_v = 0.5 * v;
      AttentionShape shape = kTwoSided;
      shape.layer = 1;
      shape.num_layers = 2;
      const ChosenOptions chosen = mom.options(assignments);
      return make_mom_mixer(chosen.get<MomOptions>(), shape)->mix({q, k, v, v}, pass, nullptr);
    };
    const at::Tensor euclidean = output({"kernel_scale=0.5"});
    EXPECT_LE(max_difference(output({"kernel_scale=1", "distance=elliptical",
                                     "metric.estimator=constant", "metric.value=0.5"}),
                             euclidean),
              1e-5);
    EXPECT_GT(max_difference(output({"kernel_scale=1"}), euclidean), 1e-3);
  }
}

TEST(Mom, OneBlockIsKde) {
  const auto heads = support::golden_heads();
  for (const bool is_global : {false, true}) {
    MomOptions options = with_blocks(1);
    options.is_global = is_global;
    EXPECT_LE(max_difference(
                  make_mom_mixer(options, support::golden_shape(false))->mix(heads, {}, nullptr),
                  make_kde_mixer({}, support::golden_shape(false))->mix(heads, {}, nullptr)),
              1e-14);
  }
}

TEST(Mom, BlocksAreARandomPartition) {
  MomOptions options;
  Pass pass, other;
  other.random = RandomKey(1);
  const auto blocks = blocks_of(options, pass);
  ASSERT_EQ(blocks.size(), 5u);
  std::set<int64_t> keys;
  for (const auto& block : blocks) {
    EXPECT_EQ(block.size(), 2u);  // of 13 keys 3 are left over
    EXPECT_TRUE(std::is_sorted(block.begin(), block.end()));
    keys.insert(block.begin(), block.end());
  }
  EXPECT_EQ(keys.size(), 10u);
  EXPECT_GE(*keys.begin(), 0);
  EXPECT_LT(*keys.rbegin(), N);
  EXPECT_EQ(blocks, blocks_of(options, pass));
  EXPECT_NE(blocks, blocks_of(options, other));
  EXPECT_EQ(draw_key_blocks(options, 3, RandomKey(0)).size(), 3u);

  options.is_overlapping = true;
  const auto subsets = blocks_of(options, pass);
  ASSERT_EQ(subsets.size(), 5u);
  for (const auto& subset : subsets) {
    EXPECT_EQ(std::set<int64_t>(subset.begin(), subset.end()).size(), 11u);  // floor(0.9 * 13)
  }
  EXPECT_NE(subsets[0], subsets[1]);
}

TEST(Mom, SpoiltBlocksDoNotMoveTheDensityBeyondTheOthers) {
  const MomOptions options;
  Pass pass;
  Trace trace;
  pass.trace = &trace;
  const auto blocks = blocks_of(options, pass);
  const at::Tensor q = wave({1, 1, N, D}), v = wave({1, 1, N, D}, 1.3);
  for (const double corruption : {1e3, -1e3, 1e-3}) {
    at::Tensor k = wave({1, 1, N, D}, 0.31);
    for (const size_t spoilt : {size_t{1}, size_t{3}}) {
      for (const int64_t j : blocks[spoilt]) k[0][0][j] = corruption * q[0][0][j];
    }
    make_mom_mixer(options, {.dim = D, .num_heads = 1})->mix({q, k, v, v}, pass, nullptr);
    const at::Tensor map = trace.tensors.at("layers.0.attention")[0][0];
    const at::Tensor keys = normalized_keys(k.to(torch::kDouble));
    const at::Tensor kernels =
        (-0.5 * (q[0][0].unsqueeze(1) - keys[0][0].unsqueeze(0)).square().sum(-1)).exp();
    for (int64_t n = 0; n < N; ++n) {
      double low = 1e9, high = 0.0, chosen = -1.0;
      for (size_t s = 0; s < blocks.size(); ++s) {
        const double p = density(kernels[n], blocks[s]);
        if (s != 1 && s != 3) low = std::min(low, p), high = std::max(high, p);
        if (map[n][blocks[s][0]].item<double>() > 0.0) chosen = p;
      }
      EXPECT_GE(chosen, low - 1e-6) << n;
      EXPECT_LE(chosen, high + 1e-6) << n;
    }
  }
}

TEST(Mom, EachOptionHasAnEffect) {
  const auto output = [](std::vector<std::string> assignments) {
    const support::AttentionVariant mom{
        .name = "mom", .attention = "mom", .assignments = assignments};
    return support::AttentionStack(mom.options(), kTwoSided).forward(wave({B, N, H * D}));
  };
  const at::Tensor plain = output({});
  for (const char* change : {"kernel_scale=0.1", "num_blocks=3", "blocks=overlapping",
                             "selection=global", "distance=elliptical"}) {
    EXPECT_FALSE(at::equal(output({change}), plain)) << change;
  }
  EXPECT_FALSE(
      at::equal(output({"blocks=overlapping"}), output({"blocks=overlapping", "left_out=0.5"})));
  EXPECT_EQ(test::error_message<ConfigError>([&] { output({"num_blocks=0"}); }),
            "--set num_blocks=0: num_blocks: must be a whole number in [1, 1048576], got 0");
  EXPECT_EQ(test::error_message<ConfigError>([&] { output({"left_out=1"}); }),
            "--set left_out=1: left_out: must be a number in [0, 1), got 1");
}

TEST(Mom, ACausalModelMustAskForTheFuture) {
  MomOptions options;
  options.is_global = true;
  EXPECT_EQ(test::error_message<ConfigError>([&] { make_mom_mixer(options, kCausal); }),
            "mom attention: selection must be \"query\" in a causal model, got \"global\": every "
            "token would see the ones after it through the choice of the block (say lookahead = "
            "true to have it so)");
  const auto leaks = [](const MomOptions& given, const AttentionShape& shape) {
    return std::get<bool>(make_mom_mixer(given, shape)->labels().at("leaks_future"));
  };
  EXPECT_FALSE(leaks(options, kTwoSided));
  options.lookahead = true;
  EXPECT_TRUE(leaks(options, kCausal));
  EXPECT_FALSE(leaks({}, kCausal));
}

}  // namespace
}  // namespace elliptical::nn::mom_test
