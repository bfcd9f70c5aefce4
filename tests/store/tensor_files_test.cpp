// SPDX-License-Identifier: MIT
//
// Tensors of every type that files and torch both have, there and back; weights as float32.
#include "elliptical/store/tensor_files.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include "elliptical/base/available_memory.h"
#include "elliptical/base/errors.h"
#include "elliptical/base/files.h"
#include "elliptical/base/safetensors.h"
#include "tests/support/error_message.h"
#include "tests/support/resource_limit.h"
#include "tests/support/temporary_folder.h"

namespace elliptical::store {
namespace {

using test::error_message;

class TensorFileTest : public ::testing::Test {
 protected:
  const test::TemporaryFolder folder_;
  const std::filesystem::path file_ = folder_.path() / "tensors.safetensors";
};

TEST_F(TensorFileTest, EveryTypeComesBack) {
  const at::ScalarType types[] = {at::kBool, at::kByte,     at::kChar, at::kShort, at::kHalf,
                                  at::kInt,  at::kBFloat16, at::kLong, at::kFloat, at::kDouble};
  NamedTensors tensors;
  for (const at::ScalarType type : types) {
    tensors.emplace_back(at::toString(type), torch::tensor({0.0, 1.0, 3.0}).to(type));
  }
  tensors.emplace_back("strided", torch::arange(6).view({2, 3}).t());
  tensors.emplace_back("empty", torch::zeros({0, 2}));
  write_tensors(file_, tensors);
  const auto read = read_tensors(file_);
  ASSERT_EQ(read.size(), tensors.size());
  for (const auto& [name, tensor] : tensors) {
    EXPECT_EQ(read.at(name).scalar_type(), tensor.scalar_type()) << name;
    EXPECT_TRUE(read.at(name).equal(tensor)) << name;
  }
}

TEST_F(TensorFileTest, WeightsAreFloat32AndCountsArePassedOver) {
  const at::Tensor exact = torch::tensor({0.5, -2.0, 1024.0}, torch::kDouble);
  NamedTensors tensors{{"count", torch::ones({}, torch::kLong)}};
  for (const at::ScalarType type : {at::kHalf, at::kBFloat16, at::kFloat, at::kDouble}) {
    tensors.emplace_back(at::toString(type), exact.to(type));
  }
  write_tensors(file_, tensors);
  const auto weights = read_floating_tensors(file_);
  EXPECT_EQ(weights.size(), 4U);
  for (const auto& [name, tensor] : weights) {
    EXPECT_TRUE(tensor.equal(exact.to(at::kFloat))) << name;
  }
}

TEST_F(TensorFileTest, TypesThatTorchHasNotAreRefusedOrPassedOver) {
  const uint16_t number = 1;
  std::string bytes;
  write_safetensors({{"ids", ElementType::kU16, {1}, std::as_bytes(std::span(&number, 1))}}, {},
                    [&](std::span<const std::byte> piece) {
                      bytes.append(reinterpret_cast<const char*>(piece.data()), piece.size());
                    });
  write_file_atomically(file_, bytes);
  EXPECT_EQ(error_message<DataError>([&] { read_tensors(file_); }),
            file_.string() + ": ids has a type that torch has not: U16");
  EXPECT_TRUE(read_floating_tensors(file_).empty());
}

TEST_F(TensorFileTest, M1MemoryThatEndsHasATypeOfItsOwn) {
  write_tensors(file_, {{"half", at::zeros({int64_t{16} << 20}, at::kHalf)}});
  for (const auto& read_all : {read_tensors, read_floating_tensors}) {
    std::string message;
    {
      const test::ResourceLimit limit = test::little_memory(rlim_t{16} << 20);  // half of it
      message = error_message<MemoryError>([&] { read_all(file_); });
    }
    EXPECT_TRUE(message.starts_with("memory: 33.6 MB more were asked for")) << message;
  }
  std::string message;
  {
    const test::ResourceLimit limit =
        test::little_memory(rlim_t{48} << 20);  // enough for the file, not for float32 of it
    message = error_message<MemoryError>([&] { read_floating_tensors(file_); });
  }
  EXPECT_TRUE(message.starts_with("memory: 67.1 MB more were asked for")) << message;
}

TEST_F(TensorFileTest, OnlyTensorsOfTheSameNamesShapesAndTypesAreCopied) {
  const NamedTensors into{{"a", torch::zeros({2})}};
  const auto copied = [&](const std::map<std::string, at::Tensor>& from) {
    return error_message<DataError>([&] { copy_tensors(into, from, "w"); });
  };
  EXPECT_EQ(copied({}), "w: must hold a Float [2], has none");
  EXPECT_EQ(copied({{"a", torch::ones({3})}}), "w: a must be Float [2], is Float [3]");
  EXPECT_EQ(copied({{"a", torch::ones({2}, torch::kLong)}}), "w: a must be Float [2], is Long [2]");
  EXPECT_EQ(copied({{"a", torch::ones({2})}, {"b", torch::ones({2})}}),
            "w: holds b, which the model has not");
  EXPECT_TRUE(into[0].second.equal(torch::zeros({2})));  // nothing was copied from any of them
  copy_tensors(into, {{"a", torch::ones({2})}}, "w");
  EXPECT_TRUE(into[0].second.equal(torch::ones({2})));
}

}  // namespace
}  // namespace elliptical::store
