// SPDX-License-Identifier: MIT
//
// The check that stands before every timing must itself be right: it passes for ours and for the
// peers, and notices a wrong answer.
#include "bench/problem.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include "bench/cases.h"
#include "bench/contestant.h"

namespace elliptical::bench {
namespace {

std::vector<AttentionCase> small_cases() {
  std::vector<AttentionCase> cases;
  for (const TimedCase& timed : all_cases()) {  // every kind of case, at a size that takes no time
    AttentionCase& c = cases.emplace_back(timed.shape);
    c.name = timed.name();
    c.sizes = self_attention(2, 2, 24, 8).sizes;
    if (!c.key_lengths.empty()) c.key_lengths = padded_lengths(2, 24);
  }
  return cases;
}

TEST(Errors, AreWithinTheLimitForOurs) {
  for (const AttentionCase& c : small_cases()) {
    const Problem problem(c);
    const auto ours = make_ours(problem);
    for (const TensorError& e : errors(problem, ours->results(Pass::kForwardBackward), true)) {
      EXPECT_LE(e.error, e.limit) << e.tensor << " of " << c.name;
    }
  }
}

TEST(Errors, AreSmallForPeers) {
  for (const AttentionCase& c : small_cases()) {
    const Problem problem(c);
    for (const char* name : {"sdpa", "unfused", "plain"}) {
      const auto peer = make_peer(name, problem, 1);
      for (const TensorError& e :
           errors(problem, peer->results(Pass::kForwardBackward), peer->with_metric())) {
        EXPECT_LT(e.error, 1e-5) << e.tensor << " of " << name << " on " << c.name;
      }
    }
  }
}

TEST(Errors, NoticeAWrongTensor) {
  const Problem problem(self_attention(2, 2, 24, 8));
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
  const Problem problem(self_attention(1, 2, 24, 8));
  const Results plain = make_peer("plain", problem, 1)->results(Pass::kForward);
  const TensorError with_metric = errors(problem, plain, true).front();
  EXPECT_GT(with_metric.error, 1000 * with_metric.limit);
}

TEST(Problem, PaddingIsAQuarterOfAllTokens) {
  AttentionCase padded = self_attention(4, 1, 1024, 4);
  padded.key_lengths = padded_lengths(4, 1024);
  const Problem problem(padded);
  EXPECT_NEAR(problem.key_lengths->to(at::kDouble).mean().item<double>() / 1024, 0.75, 0.01);
  EXPECT_EQ(problem.key_padding_mask->sum().item<int64_t>(),
            problem.key_lengths->sum().item<int64_t>());
}

}  // namespace
}  // namespace elliptical::bench
