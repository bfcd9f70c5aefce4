// SPDX-License-Identifier: MIT
//
// Weights packed once: the same bits as packed for each call, never those of another weight, and
// up to date whenever torch knows of a change.
#include "elliptical/ops/frozen_weights.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <thread>

#include "elliptical/ops/gelu_feed_forward.h"
#include "elliptical/ops/linear.h"

namespace elliptical {
namespace {

class FrozenWeightsTest : public ::testing::Test {
 protected:
  at::Tensor product() const { return ops::linear(x, weight, bias); }
  /// The same where nothing is kept: in a thread of its own.
  at::Tensor fresh_product() const {
    at::Tensor result;
    std::thread([&] { result = product(); }).join();
    return result;
  }
  /// What torch does not notice.
  void write_behind_torch() { weight.mutable_data_ptr<float>()[0] += 1.0f; }

  at::Tensor x = torch::randn({96, 40}), weight = torch::randn({24, 40}), bias = torch::randn({24});
};

TEST_F(FrozenWeightsTest, AreReadOnceAndForgottenAtTheEnd) {
  const at::Tensor before = product();
  {
    const ops::FrozenWeights frozen;
    EXPECT_TRUE(product().equal(before));
    write_behind_torch();
    EXPECT_TRUE(product().equal(before));
    EXPECT_FALSE(fresh_product().equal(before));
    {
      const ops::FrozenWeights inside;
    }
    EXPECT_TRUE(product().equal(before)) << "an inner scope must not end the outer one";
  }
  EXPECT_FALSE(product().equal(before));
  EXPECT_TRUE(product().equal(fresh_product()));
}

TEST_F(FrozenWeightsTest, ChangesInPlaceAreSeen) {
  const ops::FrozenWeights frozen;
  const at::Tensor before = product();
  weight.mul_(2.0);
  EXPECT_FALSE(product().equal(before));
  EXPECT_TRUE(product().equal(fresh_product()));
}

TEST_F(FrozenWeightsTest, AWeightNeverTakesThePlaceOfOneThatIsGone) {
  const ops::FrozenWeights frozen;
  for (int i = 0; i < 20; ++i) {
    weight = torch::randn({24, 40});
    EXPECT_TRUE(product().equal(fresh_product()));
  }
}

TEST_F(FrozenWeightsTest, PartsOfOneWeightAreWeightsOfTheirOwn) {
  const ops::FrozenWeights frozen;
  const at::Tensor all = weight;
  for (const at::Tensor& part : {all.narrow(0, 0, 12), all.narrow(0, 12, 12), all.narrow(1, 0, 20),
                                 all.narrow(0, 0, 20).narrow(1, 0, 20).t()}) {
    weight = part;
    bias = torch::randn({part.size(0)});
    x = torch::randn({96, part.size(1)});
    EXPECT_TRUE(product().equal(fresh_product()));
  }
}

TEST_F(FrozenWeightsTest, InferenceTensorsArePackedEachTime) {
  const c10::InferenceMode mode;
  weight = torch::randn({24, 40});
  const ops::FrozenWeights frozen;
  const at::Tensor before = product();
  write_behind_torch();
  EXPECT_FALSE(product().equal(before));
}

TEST_F(FrozenWeightsTest, GradientsHaveTheSameBits) {
  const at::Tensor up = torch::randn({64, 40}), up_bias = torch::randn({64}),
                   down = torch::randn({40, 64}), down_bias = torch::randn({40});
  const auto gradient = [&] {
    const at::Tensor input = x.clone().requires_grad_();
    const at::Tensor y = ops::gelu_feed_forward(input, {up, up_bias, down, down_bias});
    ops::linear(y, weight, bias).square().sum().backward();
    return input.grad();
  };
  const at::Tensor expected = gradient();
  const ops::FrozenWeights frozen;
  EXPECT_TRUE(gradient().equal(expected));
  EXPECT_TRUE(gradient().equal(expected));
}

}  // namespace
}  // namespace elliptical
