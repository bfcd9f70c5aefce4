// SPDX-License-Identifier: MIT
//
// The paths of attention give the same results, and `explain` says which one runs and why.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cstdlib>
#include <sstream>

#include "elliptical/ops/attention.h"
#include "tests/support/attention_cases.h"
#include "tests/support/attention_data.h"
#include "tests/support/max_difference.h"

namespace elliptical {
namespace {

using support::AttentionCase;
using support::AttentionData;
using support::AttentionRun;
using support::max_difference;

class AttentionPaths : public ::testing::TestWithParam<AttentionCase> {};

/// Twice the error of the composite path in float; 1e-6 because in a case of a few elements that
/// error may happen to be 0.
double allowed(double composite_error) { return 2 * composite_error + 1e-6; }

TEST_P(AttentionPaths, FusedFloatIsAsGoodAsCompositeFloat) {
  const AttentionData data = support::make_data(GetParam());
  ASSERT_EQ(ops::explain(data.q, data.k, data.v, data.metric, data.options).path, "fused");
  const AttentionRun fused = support::run(ops::attention_with_lse, data);
  const AttentionRun composite = support::run(ops::attention_composite, data);
  const AttentionRun exact = support::run(ops::attention_composite, data.to(torch::kDouble));
  EXPECT_LE(max_difference(fused.out, exact.out),
            allowed(max_difference(composite.out, exact.out)));
  EXPECT_LE(max_difference(fused.lse, exact.lse),
            allowed(max_difference(composite.lse, exact.lse)));
  for (size_t i = 0; i < exact.gradients.size(); ++i) {
    EXPECT_LE(max_difference(fused.gradients[i], exact.gradients[i]),
              allowed(max_difference(composite.gradients[i], exact.gradients[i])))
        << "gradient " << i;
  }
}

class AttentionSdpa : public ::testing::TestWithParam<AttentionCase> {};

TEST_P(AttentionSdpa, EqualsComposite) {
  const AttentionData data = support::make_data(GetParam(), torch::kDouble);
  const at::Tensor out = ops::attention_via_sdpa(data.q, data.k, data.v, data.metric, data.options);
  const at::Tensor expected =
      std::get<0>(ops::attention_composite(data.q, data.k, data.v, data.metric, data.options));
  EXPECT_LE(max_difference(out, expected), 1e-13);  // a few roundings of double
}

/// Cases that SDPA defines: it can not replay dropout, and torch leaves empty inputs open.
std::vector<AttentionCase> sdpa_cases() {
  std::vector<AttentionCase> cases = support::attention_cases();
  std::erase_if(cases, [](const AttentionCase& c) {
    const auto& [B, H, Hk, N, M, D, Dv] = c.sizes;
    return c.dropout_p > 0 || B * H * N * M * D * Dv == 0;
  });
  return cases;
}

INSTANTIATE_TEST_SUITE_P(Cases,
                         AttentionSdpa,
                         ::testing::ValuesIn(sdpa_cases()),
                         [](const auto& test) { return test.param.name; });

TEST_P(AttentionPaths, HalfPrecisionIsCloseToDouble) {
  const AttentionData data = support::make_data(GetParam()).to(torch::kBFloat16);
  ASSERT_EQ(ops::explain(data.q, data.k, data.v, data.metric, data.options).path, "composite");
  const AttentionRun half = support::run(ops::attention_with_lse, data);
  const AttentionRun exact = support::run(ops::attention_composite, data.to(torch::kDouble));
  EXPECT_EQ(half.out.scalar_type(), torch::kBFloat16);
  EXPECT_EQ(half.lse.scalar_type(), torch::kFloat);
  EXPECT_LE(max_difference(half.out, exact.out), 0.02);  // 8 bits of values up to about 3
  EXPECT_LE(max_difference(half.lse, exact.lse), 1e-5);  // computed in float
}

INSTANTIATE_TEST_SUITE_P(Cases,
                         AttentionPaths,
                         ::testing::ValuesIn(support::attention_cases()),
                         [](const auto& test) { return test.param.name; });

std::string explained(const AttentionData& data, bool need_lse = false) {
  std::ostringstream stream;
  stream << ops::explain(data.q, data.k, data.v, data.metric, data.options, need_lse);
  return stream.str();
}

/// Sets an environment variable for one scope.
class ScopedEnvironment {
 public:
  ScopedEnvironment(const char* name, const char* value) : name_(name) { setenv(name, value, 1); }
  ~ScopedEnvironment() { unsetenv(name_); }

 private:
  const char* name_;
};

TEST(AttentionExplain, FloatOnCpuIsFused) {
  EXPECT_EQ(explained(support::make_data({})),
            "fused\n"
            "  not sdpa: the fused path comes first\n"
            "  not composite: the fused path comes first");
}

TEST(AttentionExplain, OtherDtypesAreComposite) {
  EXPECT_EQ(explained(support::make_data({}, torch::kDouble)),
            "composite\n"
            "  not fused: q is Double, the kernel takes Float\n"
            "  not sdpa: q is on cpu, SDPA is used on other devices only");
}

TEST(AttentionExplain, AMaskThatRequiresGradIsComposite) {
  AttentionData data = support::make_data({});
  data.options.attn_mask = torch::zeros({5, 5}).requires_grad_();
  EXPECT_EQ(explained(data),
            "composite\n"
            "  not fused: attn_mask requires grad, the kernel gives no gradient of the mask\n"
            "  not sdpa: q is on cpu, SDPA is used on other devices only");
  const torch::NoGradGuard no_grad;
  EXPECT_EQ(explained(data).substr(0, 5), "fused");
}

AttentionData meta_data(double dropout_p) {
  AttentionData data = support::make_data({.dropout_p = dropout_p});
  for (at::Tensor* t : {&data.q, &data.k, &data.v}) *t = t->to(torch::kMeta);
  return data;
}

TEST(AttentionExplain, OtherDevicesUseSdpaUnlessItLacksSomething) {
  EXPECT_EQ(explained(meta_data(0.0)),
            "sdpa\n"
            "  not fused: q is on meta, the kernel runs on cpu\n"
            "  not composite: the sdpa path comes first");
  EXPECT_EQ(explained(meta_data(0.0), /*need_lse=*/true),
            "composite\n"
            "  not fused: q is on meta, the kernel runs on cpu\n"
            "  not sdpa: the logsumexp is asked for, SDPA does not return it");
  EXPECT_EQ(explained(meta_data(0.1)),
            "composite\n"
            "  not fused: q is on meta, the kernel runs on cpu\n"
            "  not sdpa: dropout_p > 0, SDPA can not replay dropout from a seed");
}

TEST(AttentionExplain, TheEnvironmentForcesComposite) {
  const ScopedEnvironment forced("ELLIPTICAL_ATTENTION", "composite");
  EXPECT_EQ(explained(support::make_data({})),
            "composite\n"
            "  not fused: ELLIPTICAL_ATTENTION=composite is set\n"
            "  not sdpa: ELLIPTICAL_ATTENTION=composite is set");
}

TEST(AttentionExplain, AnUnknownPathInTheEnvironmentIsRefused) {
  const ScopedEnvironment wrong("ELLIPTICAL_ATTENTION", "fast");
  try {
    explained(support::make_data({}));
    FAIL() << "accepted";
  } catch (const c10::ValueError& error) {
    EXPECT_STREQ(error.what_without_backtrace(),
                 "attention: ELLIPTICAL_ATTENTION must be auto or composite, got fast");
  }
}

TEST(AttentionExplain, DrawsNoSeed) {
  AttentionData data = support::make_data({.dropout_p = 0.5});
  data.options = data.fresh_options();
  const at::Tensor before = data.options.generator->get_state();
  explained(data);
  EXPECT_TRUE(before.equal(data.options.generator->get_state()));
}

}  // namespace
}  // namespace elliptical
