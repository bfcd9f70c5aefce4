// SPDX-License-Identifier: MIT
//
// Numbers at the edge of float: huge and tiny logits, denormals, a scale of zero.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>

#include "tests/kernels/composite.h"
#include "tests/kernels/problem.h"
#include "tests/kernels/targets.h"

namespace elliptical::kernels::test {
namespace {

AttentionCase plain_case(const AttentionSizes& sizes) {
  AttentionCase options;
  options.seed = 5;
  options.sizes = sizes;
  options.scale = 1.0;
  options.plain_memory = true;
  return options;
}

void expect_all_finite(const Result<float>& result, const std::string& what) {
  for (const auto& [name, values] : tensors(result))
    for (const float value : values) ASSERT_TRUE(std::isfinite(value)) << name << ", " << what;
}

/// Runs the same change on the float and the double problem and judges the kernel on it.
template <class Change>
void check_changed(const AttentionCase& options, const Change& change, const std::string& what) {
  Problem<float> problem(options);
  Problem<double> exact_problem(options);
  change(problem);
  change(exact_problem);
  const Result<float> composite = run_composite(problem);
  const Result<double> exact = run_reference(exact_problem);
  const auto scales = error_scales(exact_problem);
  for (const std::string& target : targets_under_test()) {
    const ForcedTarget forced(target);
    const Result<float> result = run_kernel(problem);
    expect_all_finite(result, target + ", " + what);
    expect_accurate(result, composite, exact, scales, target + ", " + what);
  }
}

TEST(AttentionExtremes, N2_LogitsOfTenThousand) {
  for (const AttentionSizes& sizes :
       {AttentionSizes{1, 2, 1, 17, 33, 8, 8}, AttentionSizes{1, 1, 1, 130, 200, 64, 16}}) {
    AttentionCase options = plain_case(sizes);
    options.metric = "BH1D";
    options.spread = 100.0;
    options.scale.reset();  // logits of about +-1e4
    check_changed(options, [](auto&) {}, "both signs");

    const auto same_sign = [](double sign) {
      return [sign](auto& problem) {
        problem.q.for_each([&](int64_t b, int64_t h, int64_t n, int64_t d) {
          auto& value = problem.q.at(b, h, n, d);
          value = sign * std::abs(value);
        });
        problem.k.for_each([&](int64_t b, int64_t h, int64_t n, int64_t d) {
          auto& value = problem.k.at(b, h, n, d);
          value = std::abs(value);
        });
      };
    };
    check_changed(options, same_sign(1.0), "all positive");
    check_changed(options, same_sign(-1.0), "all negative");
  }
}

TEST(AttentionExtremes, N2_OneLogitAboveAllOthers) {
  // Key `peak` has the logit 1e4, all others -1e4: the output is its value, exactly.
  const AttentionSizes sizes = {1, 1, 1, 40, 150, 16, 16};
  for (const int64_t peak : {int64_t{0}, int64_t{1}, int64_t{97}, sizes.M - 1}) {
    Problem<float> problem(plain_case(sizes));
    problem.q.for_each(
        [&](int64_t b, int64_t h, int64_t n, int64_t d) { problem.q.at(b, h, n, d) = 25.0f; });
    problem.k.for_each([&](int64_t b, int64_t h, int64_t j, int64_t d) {
      problem.k.at(b, h, j, d) = j == peak ? 25.0f : -25.0f;
    });
    for (const std::string& target : targets_under_test()) {
      const ForcedTarget forced(target);
      const Result<float> result = run_kernel(problem);
      result.o.for_each([&](int64_t b, int64_t h, int64_t n, int64_t i) {
        ASSERT_EQ(result.o.at(b, h, n, i), problem.v.at(b, h, peak, i)) << target;
      });
      // scale * log2(e) * 1e4 is rounded once, ln(2) times it once more.
      for (const float lse : result.lse) ASSERT_NEAR(lse, 1e4f, 1e4f * 0x1p-22f) << target;
    }
  }
}

TEST(AttentionExtremes, N2_GrowingLogits) {
  // Every key beats all before it: the running maximum moves at each step.
  AttentionCase options = plain_case({1, 1, 1, 20, 300, 4, 4});
  check_changed(
      options,
      [](auto& problem) {
        problem.q.for_each([&](int64_t b, int64_t h, int64_t n, int64_t d) {
          problem.q.at(b, h, n, d) = static_cast<float>(d == 0);
        });
        problem.k.for_each([&](int64_t b, int64_t h, int64_t j, int64_t d) {
          problem.k.at(b, h, j, d) = static_cast<float>(j);
        });
      },
      "growing");
}

TEST(AttentionExtremes, N2_ScaleZeroIsTheMean) {
  AttentionCase options = plain_case({2, 2, 2, 19, 37, 8, 8});
  options.scale = 0.0;
  check_changed(options, [](auto&) {}, "scale 0");
  const Problem<float> problem(options);
  for (const std::string& target : targets_under_test()) {
    const ForcedTarget forced(target);
    const Result<float> result = run_kernel(problem);
    for (const float value : result.dq.values()) ASSERT_EQ(value, 0.0f) << target;
    for (const float lse : result.lse)
      ASSERT_NEAR(lse, std::log(37.0f), 4 * 0x1p-22f) << target;  // a few ulp of log(37) = 3.6
  }
}

TEST(AttentionExtremes, N2_DenormalInputs) {
  // Denormal values and gradients pass through; denormal queries and keys are logits of zero.
  const auto shrink = [](auto& array) {
    array.for_each([&](int64_t b, int64_t h, int64_t n, int64_t d) {
      auto& value = array.at(b, h, n, d);
      value = static_cast<float>(std::ldexp(static_cast<double>(value), -135));
    });
  };
  AttentionCase options = plain_case({1, 2, 2, 21, 35, 8, 8});
  options.has_d_lse = false;
  Problem<float> problem(options);
  Problem<double> exact_problem(options);
  for (auto* array : {&problem.q, &problem.k, &problem.v}) shrink(*array);
  for (auto* array : {&exact_problem.q, &exact_problem.k, &exact_problem.v}) shrink(*array);
  const auto exact = tensors(run_reference(exact_problem));
  for (const std::string& target : targets_under_test()) {
    const ForcedTarget forced(target);
    const auto result = tensors(run_kernel(problem));
    for (size_t t = 0; t < exact.size(); ++t) {
      // Each of 35 products of a denormal may lose half a step of 2^-149.
      const double floor = 35 * 0x1p-149;
      double scale = 0;
      for (const double value : exact[t].values) scale = std::max(scale, std::abs(value));
      EXPECT_LE(max_error(result[t].values, exact[t].values), 32 * 0x1p-24 * scale + floor)
          << exact[t].name << ", " << target;
    }
  }
}

TEST(AttentionExtremes, N2_TinyProbabilitiesUnderflowToZero) {
  // Additive bias of -1e30 (finite, as frameworks write masks) leaves no trace and no NaN.
  AttentionCase options = plain_case({1, 2, 1, 33, 65, 8, 8});
  options.mask_add = "BHNM";
  Problem<float> biased(options);
  biased.mask_add.for_each([&](int64_t b, int64_t h, int64_t n, int64_t j) {
    biased.mask_add.at(b, h, n, j) = (n + j) % 3 ? 0.0f : -1e30f;
  });
  Problem<float> hidden(options);
  hidden.mask_add.for_each([&](int64_t b, int64_t h, int64_t n, int64_t j) {
    hidden.mask_add.at(b, h, n, j) = (n + j) % 3 ? 0.0f : -std::numeric_limits<float>::infinity();
  });
  for (const std::string& target : targets_under_test()) {
    const ForcedTarget forced(target);
    expect_same_bits(run_kernel(biased), run_kernel(hidden), target);
  }
}

TEST(AttentionExtremes, N2_RowOfFiniteLowestBiasIsUniform) {
  // All keys biased by the same huge negative number: softmax ignores a common shift.
  AttentionCase options = plain_case({1, 1, 1, 9, 31, 8, 8});
  options.mask_add = "BHNM";
  options.scale = 0.0;
  Problem<float> problem(options);
  problem.mask_add.for_each([&](int64_t b, int64_t h, int64_t n, int64_t j) {
    problem.mask_add.at(b, h, n, j) = -1e30f;
  });
  Problem<double> exact_problem(options);
  exact_problem.mask_add.for_each([&](int64_t b, int64_t h, int64_t n, int64_t j) {
    exact_problem.mask_add.at(b, h, n, j) = 0;
  });
  const Result<double> exact = run_reference(exact_problem);
  for (const std::string& target : targets_under_test()) {
    const ForcedTarget forced(target);
    const Result<float> result = run_kernel(problem);
    // A mean of 31 numbers of order 1.
    EXPECT_LE(max_error(result.o.values(), exact.o.values()), 32 * 0x1p-24) << target;
  }
}

}  // namespace
}  // namespace elliptical::kernels::test
