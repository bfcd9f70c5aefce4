// SPDX-License-Identifier: MIT
#include "elliptical/run/failure_text.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <new>
#include <stdexcept>

namespace elliptical::run {
namespace {

template <class Function>
std::string text_of(const Function& function) {
  try {
    function();
  } catch (const std::exception& error) {
    return failure_text(error);
  }
  return "nothing was thrown";
}

TEST(FailureText, M1SaysHowMuchTorchAskedFor) {
  const std::string text = text_of([] { at::empty({int64_t{1} << 45}, at::kFloat); });
  EXPECT_TRUE(text.starts_with("memory: 140.7 TB more were asked for and could not be had"))
      << text;
  EXPECT_NE(text.find("(smaller batches, windows or models;"), std::string::npos) << text;
}

TEST(FailureText, M1KnowsSizesThatNoMachineHas) {
  const auto overflow = [] { at::empty({int64_t{1} << 40, int64_t{1} << 40}, at::kFloat); };
  for (const std::string& text : {text_of(overflow), text_of([] { throw std::bad_alloc(); }),
                                  text_of([] { std::vector<char>().reserve(size_t{1} << 63); })}) {
    EXPECT_TRUE(text.starts_with("memory: more was asked for than could be had")) << text;
  }
}

TEST(FailureText, IsTheMessageOfEverythingElse) {
  EXPECT_EQ(text_of([] { throw std::runtime_error("a: must be b"); }), "a: must be b");
  const std::string text = text_of([] { TORCH_CHECK(false, "sizes must match"); });
  EXPECT_EQ(text, "sizes must match");
}

}  // namespace
}  // namespace elliptical::run
