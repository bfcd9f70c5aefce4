// SPDX-License-Identifier: MIT
//
// The check that stands before every timing must itself be right: it passes for ours and for the
// peers, and notices a wrong answer.
#include "bench/problem.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include "bench/contestant.h"

namespace elliptical::bench {
namespace {

std::vector<Case> small_cases() {
  std::vector<Case> cases;
  for (Case c : all_cases()) {  // every kind of case, at a size that takes no time
    c.B = 2, c.H = 2, c.N = 24, c.D = 8;
    cases.push_back(c);
  }
  return cases;
}

TEST(Errors, AreWithinTheLimitForOurs) {
  for (const Case& c : small_cases()) {
    const Problem problem(c);
    const auto ours = make_ours(problem);
    for (const TensorError& e : errors(problem, ours->results(Pass::kForwardBackward), true)) {
      EXPECT_LE(e.error, e.limit) << e.tensor << " of " << c.name();
    }
  }
}

TEST(Errors, AreSmallForPeers) {
  for (const Case& c : small_cases()) {
    const Problem problem(c);
    for (const char* name : {"sdpa", "unfused", "plain"}) {
      const auto peer = make_peer(name, problem, 1);
      for (const TensorError& e :
           errors(problem, peer->results(Pass::kForwardBackward), peer->with_metric())) {
        EXPECT_LT(e.error, 1e-5) << e.tensor << " of " << name << " on " << c.name();
      }
    }
  }
}

TEST(Errors, NoticeAWrongTensor) {
  const Problem problem({.B = 2, .H = 2, .N = 24, .D = 8});
  const Results right = make_ours(problem)->results(Pass::kForwardBackward);
  for (size_t wrong = 0; wrong < 4; ++wrong) {
    Results results = right;
    at::Tensor& tensor = wrong == 0 ? results.out : results.grads->at(wrong - 1);
    tensor = tensor.detach().clone();
    tensor[0][0][3][5] += 1e-4 * tensor.abs().max();
    const auto found = errors(problem, results, true);
    ASSERT_EQ(found.size(), 4);
    for (size_t i = 0; i < found.size(); ++i) {
      EXPECT_EQ(found[i].error > found[i].limit, i == wrong) << found[i].tensor;
    }
  }
}

TEST(Errors, NoticeAMissingMetric) {
  const Problem problem({.B = 1, .H = 2, .N = 24, .D = 8});
  const Results plain = make_peer("plain", problem, 1)->results(Pass::kForward);
  const TensorError with_metric = errors(problem, plain, true).front();
  EXPECT_GT(with_metric.error, 1000 * with_metric.limit);
}

TEST(Problem, PaddingIsAQuarterOfAllTokens) {
  const Problem problem({.B = 4, .H = 1, .N = 1024, .D = 4, .mask = Mask::kPadding});
  EXPECT_NEAR(problem.key_lengths->to(at::kDouble).mean().item<double>() / 1024, 0.75, 0.01);
  EXPECT_EQ(problem.key_padding_mask->sum().item<int64_t>(),
            problem.key_lengths->sum().item<int64_t>());
}

}  // namespace
}  // namespace elliptical::bench
