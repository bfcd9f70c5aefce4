// SPDX-License-Identifier: MIT
//
// A softmax in blocks against its reference: each pass alone, and both together
// as the gradient of a cross-entropy over all words.
#include "elliptical/kernels/softmax_block.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "elliptical/kernels/softmax_block_reference.h"
#include "tests/kernels/floats.h"
#include "tests/kernels/on_every_target.h"
#include "tests/kernels/same_bits.h"

namespace elliptical::kernels {

/// The largest logit minus itself is 0 without any rounding; else the difference rounds, and its
/// product with log2(e) once more.
template <>
test::Bounded softmax_exponent(float a, float b) {
  const double exact = double{a} - double{b};
  return {exact, 0x1p-24 * std::abs(exact)};
}

namespace test::softmax_block_test {
namespace {

constexpr int kRandomCases = kSanitized ? 200 : 2000;
constexpr int64_t kRows[] = {0, 1, 1, 2, 3, 5, 17};
constexpr int64_t kWords[] = {0,  1,  2,  3,  4,  5,  7,  8,  9,   15,  16,  17,
                              31, 32, 33, 63, 64, 65, 67, 97, 511, 512, 513, 1030};
constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kUntouched = 123.0f;

/// Logits of one block, and what the two passes make of them.
struct Block {
  int64_t rows, words, first_word;
  Floats values, bias;
  std::vector<int64_t> targets;
  Floats max, sum, target_logit;

  Block(int64_t rows_in, int64_t words_in, Random& random)
      : rows(rows_in),
        words(words_in),
        first_word(random.below(100)),
        values(Floats::normal(rows * words, random, random.chance(0.3) ? 20 : 2)),
        bias(Floats::normal(words, random)),
        max(rows),
        sum(rows),
        target_logit(rows, kUntouched) {
    for (int64_t r = 0; r < rows; ++r) {  // before, in or behind the block
      targets.push_back(std::max<int64_t>(0, first_word + random.below(words + 4) - 2));
    }
  }

  SoftmaxBlock kernel() { return {rows, words, values.data(), targets.data(), first_word}; }
  void exponentials(const ParallelFor& parallel_for = serial_for) {
    softmax_block_exp(kernel(), bias.data(), max.data(), sum.data(), target_logit.data(),
                      parallel_for);
  }
};

TEST(SoftmaxBlock, ExponentialsAreThoseOfDouble) {
  on_every_target([] {
    for (uint64_t seed = 0; seed < kRandomCases && !testing::Test::HasFailure(); ++seed) {
      Random random(seed);
      const int64_t rows = random.pick(kRows), words = random.pick(kWords);
      const Block before(rows, words, random);
      Block block = before;
      block.exponentials();
      Block given = before;
      std::vector<Bounded> e(static_cast<size_t>(rows * words)), sums(static_cast<size_t>(rows));
      softmax_block_exp_reference(given.kernel(), given.bias.data(), given.max.data(), e.data(),
                                  sums.data(), given.target_logit.data());
      const std::string what = "case " + std::to_string(seed) + ", " + std::to_string(rows) +
                               " rows, " + std::to_string(words) + " words";
      expect_within(block.values, e, what + ": e");
      expect_within(block.sum, sums, what + ": sum");
      expect_same_bits(block.max, given.max, what + ": max");
      expect_same_bits(block.target_logit, given.target_logit, what + ": target");
      EXPECT_TRUE(block.max.guards_untouched() && block.target_logit.guards_untouched()) << what;
    }
  });
}

TEST(SoftmaxBlock, LargestExponentialIsOneAndMinusInfinityIsNone) {
  on_every_target([] {
    Random random(1);
    Block block(3, 21, random);
    block.bias[4] = block.bias[20] = -kInf;
    block.exponentials();
    for (int64_t r = 0; r < 3; ++r) {
      float largest = 0;
      for (int64_t w = 0; w < 21; ++w) largest = std::max(largest, block.values[r * 21 + w]);
      EXPECT_EQ(largest, 1.0f);
      EXPECT_EQ(block.values[r * 21 + 4], 0.0f);
      EXPECT_EQ(block.values[r * 21 + 20], 0.0f);
      EXPECT_TRUE(std::isfinite(block.sum[r]));
    }
  });
}

TEST(SoftmaxBlock, NanStaysInItsRow) {
  on_every_target([] {
    for (const int64_t bad : {0, 7, 8, 20, 33, 34}) {
      Random random(2);
      Block clean(4, 35, random);
      Block dirty = clean;
      dirty.values[2 * 35 + bad] = std::numeric_limits<float>::quiet_NaN();
      clean.exponentials();
      dirty.exponentials();
      EXPECT_TRUE(std::isnan(dirty.sum[2])) << bad;
      for (const int64_t r : {0, 1, 3}) {
        EXPECT_EQ(dirty.sum[r], clean.sum[r]);
        EXPECT_EQ(dirty.max[r], clean.max[r]);
      }
    }
  });
}

TEST(SoftmaxBlock, GradientIsTheFormulas) {
  on_every_target([] {
    for (uint64_t seed = 0; seed < kRandomCases && !testing::Test::HasFailure(); ++seed) {
      Random random(seed);
      const int64_t rows = random.pick(kRows), words = random.pick(kWords);
      Block block(rows, words, random);
      for (float& value : block.values) value = static_cast<float>(random.uniform());
      const Floats factor = Floats::normal(rows, random), step = Floats::normal(rows, random);
      const Floats before = Floats::normal(words, random);
      const bool accumulate = random.chance(0.5);
      std::vector<Bounded> d(static_cast<size_t>(rows * words)), sums(static_cast<size_t>(words));
      if (accumulate) sums = before.as<Bounded>();
      softmax_block_gradient_reference(block.kernel(), factor.data(), step.data(), d.data(),
                                       sums.data());
      Floats d_bias = accumulate ? before : Floats(words);
      softmax_block_gradient(block.kernel(), factor.data(), step.data(), d_bias.data(), accumulate,
                             serial_for);
      const std::string what = "case " + std::to_string(seed) + ", " + std::to_string(rows) +
                               " rows, " + std::to_string(words) + " words";
      expect_within(block.values, d, what + ": d");
      expect_within(d_bias, sums, what + ": d_bias");
    }
  });
}

/// Both passes over all words of a softmax, cut into blocks, as the adaptive softmax runs them.
TEST(SoftmaxBlock, BlocksTogetherAreTheGradientOfACrossEntropy) {
  on_every_target([] {
    for (uint64_t seed = 0; seed < kRandomCases / 10 && !testing::Test::HasFailure(); ++seed) {
      Random random(seed);
      const int64_t rows = 1 + random.below(5);
      std::vector<Block> blocks, logits;
      int64_t words = 0;
      for (int64_t count = 1 + random.below(4); count > 0; --count) {
        blocks.emplace_back(rows, 1 + random.below(70), random);
        blocks.back().first_word = words;
        words += blocks.back().words;
      }
      std::vector<int64_t> targets;
      for (int64_t r = 0; r < rows; ++r) targets.push_back(random.below(words));
      for (Block& block : blocks) block.targets = targets;
      logits = blocks;

      for (Block& block : blocks) block.exponentials();
      for (int64_t r = 0; r < rows; ++r) {
        const float step = static_cast<float>(0.1 + random.uniform());
        double total = 0, exact_total = 0, lowest = 0;
        const auto logit_of = [&](size_t b, int64_t w) {
          return double{softmax_logit(logits[b].kernel(), logits[b].bias.data(), r, w)};
        };
        for (const Block& block : blocks) total += std::exp(double{block.max[r]}) * block.sum[r];
        for (size_t b = 0; b < blocks.size(); ++b) {
          for (int64_t w = 0; w < blocks[b].words; ++w) {
            exact_total += std::exp(logit_of(b, w));
            lowest = std::min(lowest, logit_of(b, w));
          }
        }
        for (size_t b = 0; b < blocks.size(); ++b) {
          Block& block = blocks[b];
          // This row alone, as a block of one row.
          const auto factor = static_cast<float>(step * std::exp(double{block.max[r]}) / total);
          Floats d_bias(block.words);
          SoftmaxBlock row = block.kernel();
          row.rows = 1;
          row.values += r * block.words;
          row.targets += r;
          softmax_block_gradient(row, &factor, &step, d_bias.data(), false, serial_for);
          for (int64_t w = 0; w < block.words; ++w) {
            const double p = std::exp(logit_of(b, w)) / exact_total;
            const double wanted = step * (p - (targets[r] == block.first_word + w));
            // Exponentials and their sum: 2.4e-7 each, some roundings, and those of a difference
            // of up to max - lowest in each exponent.
            const double span = 2 * (std::log(exact_total) - lowest);
            ASSERT_NEAR(row.values[w], wanted,
                        step * p * (5e-7 + (words + 8 + 3 * span) * 0x1p-24) + 2 * 0x1p-24)
                << "case " << seed << " word " << block.first_word + w;
            EXPECT_EQ(d_bias[w], row.values[w]);
          }
        }
      }
    }
  });
}

TEST(SoftmaxBlock, SameBitsForAnySchedule) {
  on_every_target([] {
    Random random(3);
    const Block before(70, 1530, random);
    const Floats factor = Floats::normal(70, random), step = Floats::normal(70, random);
    expect_same_for_any_schedule([&](const ParallelFor& parallel_for) {
      Block block = before;
      block.exponentials(parallel_for);
      Floats d_bias(block.words);
      softmax_block_gradient(block.kernel(), factor.data(), step.data(), d_bias.data(), false,
                             parallel_for);
      return std::vector<Floats>{block.values, block.max, block.sum, d_bias};
    });
  });
}

}  // namespace
}  // namespace test::softmax_block_test
}  // namespace elliptical::kernels
