// SPDX-License-Identifier: MIT
//
// What is hidden stays hidden, even when it is NaN or infinite; what is visible is not hushed up.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <string>

#include "tests/kernels/problem.h"
#include "tests/kernels/targets.h"
#include "tests/kernels/visibility.h"

namespace elliptical::kernels::test::attention_nan_test {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInf = std::numeric_limits<float>::infinity();

/// How positions get hidden in a test.
struct Hiding {
  const char* name;
  bool by_length, by_causal_order, by_boolean, by_minus_infinity;
};
std::ostream& operator<<(std::ostream& stream, const Hiding& hiding) {
  return stream << hiding.name;
}

constexpr Hiding kHidings[] = {
    {"Length", true, false, false, false},         {"CausalOrder", false, true, false, false},
    {"BooleanMask", false, false, true, false},    {"AdditiveMask", false, false, false, true},
    {"LengthAndCausal", true, true, false, false}, {"Everything", true, true, true, true},
};

/// A random case with this hiding and no other, every array in memory of its own.
AttentionCase hiding_case(const Hiding& hiding, uint64_t seed) {
  AttentionCase options = random_case(seed, seed % 8 == 0   ? CaseSize::block
                                            : seed % 8 == 1 ? CaseSize::few
                                                            : CaseSize::small);
  Random random(seed + 1000);
  options.plain_memory = true;
  if (!options.metric.empty()) options.metric = options.has_metric_row() ? "BH1D" : "BHND";
  options.is_causal = hiding.by_causal_order;
  options.mask_keep = hiding.by_boolean ? "BHNM" : "";
  options.mask_add = hiding.by_minus_infinity ? "BHNM" : "";
  options.key_lengths.clear();
  for (int64_t b = 0; b < options.sizes.B && hiding.by_length; ++b)
    options.key_lengths.push_back(random.below(options.sizes.M + 1));
  return options;
}

/// Hides some keys from all queries and some queries from all keys, beyond what the random masks
/// do.
void widen_masks(Problem<float>& problem) {
  const auto hidden = [](int64_t n, int64_t j) { return j % 5 == 2 || n % 7 == 3; };
  problem.mask_keep.for_each([&](int64_t b, int64_t h, int64_t n, int64_t j) {
    if (hidden(n, j)) problem.mask_keep.at(b, h, n, j) = false;
  });
  problem.mask_add.for_each([&](int64_t b, int64_t h, int64_t n, int64_t j) {
    if (hidden(n, j)) problem.mask_add.at(b, h, n, j) = -kInf;
  });
}

/// Writes junk() wherever no result may depend on the number.
void fill_hidden(Problem<float>& problem, const std::function<float()>& junk) {
  Problem<float> rules(problem.options);
  widen_masks(rules);
  const Visibility visibility(rules);
  const auto& [B, H, Hk, N, M, D, Dv] = problem.options.sizes;
  for (int64_t b = 0; b < B; ++b) {
    for (int64_t hk = 0; hk < (H == 0 ? 0 : Hk); ++hk) {
      for (int64_t j = 0; j < M; ++j) {
        if (visibility.is_seen(b, hk, j)) continue;
        for (int64_t i = 0; i < D; ++i) problem.k.at(b, hk, j, i) = junk();
        for (int64_t i = 0; i < Dv; ++i) problem.v.at(b, hk, j, i) = junk();
      }
    }
    for (int64_t h = 0; h < H; ++h) {
      for (int64_t n = 0; n < N; ++n) {
        // Additive mask where something else already hides the key.
        for (int64_t j = 0; j < M && problem.mask_add; ++j) {
          if (!visibility.sees(b, h, n, j) && rules.mask_add.at(b, h, n, j) != -kInf)
            problem.mask_add.at(b, h, n, j) = junk();
        }
        if (visibility.sees_any(b, h, n)) continue;
        for (int64_t i = 0; i < D; ++i) problem.q.at(b, h, n, i) = junk();
        for (int64_t i = 0; i < Dv; ++i) problem.d_o.at(b, h, n, i) = junk();
        if (!problem.d_lse.empty()) problem.d_lse[(b * H + h) * N + n] = junk();
        for (int64_t i = 0; i < D && problem.options.metric == "BHND"; ++i)
          problem.metric.at(b, h, n, i) = junk();
      }
    }
  }
}

class AttentionHidden : public ::testing::TestWithParam<Hiding> {};

TEST_P(AttentionHidden, K1_JunkInHiddenPlacesChangesNothing) {
  for (uint64_t seed = 0; seed < 60; ++seed) {
    const AttentionCase options = hiding_case(GetParam(), seed);
    Problem<float> finite(options), poisoned(options);
    for (Problem<float>* problem : {&finite, &poisoned}) widen_masks(*problem);
    Random random(seed);
    fill_hidden(finite, [&] { return static_cast<float>(random.normal()); });
    fill_hidden(poisoned, [&] {
      constexpr float junk[] = {kNan, kInf, -kInf, std::numeric_limits<float>::max()};
      return random.pick(junk);
    });
    for (const std::string& target : targets_under_test()) {
      const ForcedTarget forced(target);
      expect_same_bits(run_kernel(poisoned), run_kernel(finite),
                       target + ", " + options.describe());
      if (HasFatalFailure()) return;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(By,
                         AttentionHidden,
                         ::testing::ValuesIn(kHidings),
                         [](const auto& hiding) { return std::string(hiding.param.name); });

/// What one NaN reaches and what it must not.
class AttentionNan : public ::testing::TestWithParam<Hiding> {
 protected:
  using Place = std::function<bool(int64_t b, int64_t h, int64_t n)>;

  /// Rows that `reached` names must be NaN in o. All other rows of o, lse and dq, and the rows of
  /// dk and dv that `key_reached` does not name, must have the bits of the clean problem.
  void expect_confined(const Problem<float>& dirty,
                       const Problem<float>& clean,
                       const Place& reached,
                       const Place& key_reached,
                       const std::string& what) {
    for (const std::string& target : targets_under_test()) {
      const ForcedTarget forced(target);
      const Result<float> got = run_kernel(dirty), expected = run_kernel(clean);
      const AttentionSizes& sizes = clean.options.sizes;
      got.o.for_each([&](int64_t b, int64_t h, int64_t n, int64_t i) {
        if (reached(b, h, n)) return;
        EXPECT_TRUE(same_bits(got.o.at(b, h, n, i), expected.o.at(b, h, n, i)))
            << target << " o at n=" << n << ", " << what;
        const int64_t row = (b * sizes.H + h) * sizes.N + n;
        EXPECT_TRUE(same_bits(got.lse[row], expected.lse[row])) << target << ", " << what;
      });
      got.dq.for_each([&](int64_t b, int64_t h, int64_t n, int64_t i) {
        if (reached(b, h, n)) return;
        EXPECT_TRUE(same_bits(got.dq.at(b, h, n, i), expected.dq.at(b, h, n, i)))
            << target << " dq at n=" << n << ", " << what;
      });
      const auto expect_clean_keys = [&](const StridedArray<float>& actual,
                                         const StridedArray<float>& wanted, const char* name) {
        actual.for_each([&](int64_t b, int64_t hk, int64_t j, int64_t i) {
          if (key_reached(b, hk, j)) return;
          EXPECT_TRUE(same_bits(actual.at(b, hk, j, i), wanted.at(b, hk, j, i)))
              << target << " " << name << " at j=" << j << ", " << what;
        });
      };
      expect_clean_keys(got.dk, expected.dk, "dk");
      expect_clean_keys(got.dv, expected.dv, "dv");
      got.o.for_each([&](int64_t b, int64_t h, int64_t n, int64_t i) {
        if (reached(b, h, n)) {
          EXPECT_TRUE(std::isnan(got.o.at(b, h, n, i)))
              << target << " o is " << got.o.at(b, h, n, i) << " at n=" << n << ", " << what;
        }
      });
      if (HasFailure()) return;
    }
  }

  AttentionCase nan_case(uint64_t seed) const {
    AttentionCase options = hiding_case(GetParam(), seed);
    options.sizes.N = std::max<int64_t>(options.sizes.N, 5);
    options.sizes.M = options.sizes.N;
    for (int64_t& length : options.key_lengths) length = options.sizes.M / 2 + 2;
    options.dropout_p = 0.0;
    options.spread = 1.0;
    if (options.has_metric_row()) options.metric = "BHND";
    return options;
  }
};

TEST_P(AttentionNan, K1_VisibleNanReachesTheRowsThatSeeItAndNoOther) {
  for (uint64_t seed = 0; seed < 24; ++seed) {
    const AttentionCase options = nan_case(seed);
    const Problem<float> clean(options);
    const auto& [B, H, Hk, N, M, D, Dv] = options.sizes;
    if (B == 0 || H == 0) continue;
    const Visibility visibility(clean);
    Random random(seed);
    const int64_t bad_b = random.below(B), bad_h = random.below(H), bad = random.below(N);
    const int64_t bad_hk = bad_h / (H / Hk), group = H / Hk;
    const auto sees_bad_key = [&](int64_t b, int64_t h, int64_t n) {
      return b == bad_b && h / group == bad_hk && visibility.sees(b, h, n, bad);
    };

    // Sums over queries: zero times NaN may reach any key of that head, and no other head.
    const auto in_bad_head = [&](int64_t b, int64_t hk, int64_t) {
      return b == bad_b && hk == bad_hk;
    };

    Problem<float> bad_key(options);
    bad_key.k.at(bad_b, bad_hk, bad, random.below(D)) = kNan;
    expect_confined(bad_key, clean, sees_bad_key, in_bad_head, "NaN in k, " + options.describe());

    Problem<float> bad_value(options);
    for (int64_t i = 0; i < Dv; ++i) bad_value.v.at(bad_b, bad_hk, bad, i) = kNan;
    expect_confined(bad_value, clean, sees_bad_key, in_bad_head, "NaN in v, " + options.describe());

    Problem<float> bad_query(options);
    bad_query.q.at(bad_b, bad_h, bad, random.below(D)) = kNan;
    const auto is_bad_query = [&](int64_t b, int64_t h, int64_t n) {
      return b == bad_b && h == bad_h && n == bad && visibility.sees_any(b, h, n);
    };
    expect_confined(bad_query, clean, is_bad_query, in_bad_head, "NaN in q, " + options.describe());
    if (HasFailure()) return;
  }
}

INSTANTIATE_TEST_SUITE_P(By, AttentionNan, ::testing::ValuesIn(kHidings), [](const auto& hiding) {
  return std::string(hiding.param.name);
});

}  // namespace
}  // namespace elliptical::kernels::test::attention_nan_test
