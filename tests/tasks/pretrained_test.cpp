// SPDX-License-Identifier: MIT
//
// Weights from files, and the published DeiT-tiny on real pictures: its logits, and what elliptical
// attention makes of the same weights.
#include "elliptical/tasks/pretrained.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <fstream>

#include "elliptical/base/errors.h"
#include "elliptical/base/files.h"
#include "elliptical/data/catalog.h"
#include "elliptical/data/xz.h"
#include "elliptical/store/checkpoint.h"
#include "elliptical/store/tensor_files.h"
#include "tests/support/error_message.h"
#include "tests/support/small_image_model.h"
#include "tests/support/temporary_folder.h"

namespace elliptical::tasks {
namespace {

using support::evaluate;
using support::make_image_model;
using support::small_vit;
using support::some_pixels;
using support::stir_parameters;
using test::error_message;
using test::TemporaryFolder;

TEST(Pretrained, ReadsSafetensorsOfAnyFloatingType) {
  const TemporaryFolder folder;
  const auto from = make_image_model("vit", small_vit()), to = make_image_model("vit", small_vit());
  stir_parameters(*from);
  store::NamedTensors tensors = store::named_tensors(*from);
  size_t index = 0;
  const at::ScalarType types[] = {at::kFloat, at::kHalf, at::kBFloat16, at::kDouble};
  for (auto& [name, value] : tensors) value = value.detach().to(types[index++ % 4]);
  tensors.emplace_back("steps", torch::ones({}, at::kLong));  // no weight
  const std::string file = (folder.path() / "w.safetensors").string();
  store::write_tensors(file, tensors);
  EXPECT_TRUE(load_pretrained(*to, file).empty());
  const auto loaded = to->named_parameters();
  for (const auto& [name, value] : tensors) {
    if (name == "steps") continue;
    EXPECT_TRUE(at::equal(loaded[name], value.to(at::kFloat))) << name;
  }
}

TEST(Pretrained, SaysWhereItLooked) {
  EXPECT_EQ(
      error_message<SetupError>([] { read_weights("no-such-weights", {}); }),
      "weights: no-such-weights must be a safetensors file, a run, a folder of packed weights or "
      "the name of one below $ELLIPTICAL_DATA, is none (tools/convert_weights.py makes "
      "safetensors of .pth files)");
  const TemporaryFolder folder;
  EXPECT_EQ(error_message<DataError>([&] { read_weights(folder.path().string(), {}); }),
            folder.path().string() +
                ": a folder of weights must hold index.tsv, holds none (give the safetensors file "
                "itself)");
}

/// A run folder with checkpoints of steps 1 and 2, whose weights are all 1 and all 2.
class PretrainedRun : public ::testing::Test {
 protected:
  PretrainedRun() {
    std::filesystem::create_directories(run_ / "checkpoints");
    for (const int64_t step : {1, 2}) {
      store::save_checkpoint(run_ / "checkpoints", {.step = step},
                             {.model = {{"w", torch::full({3}, static_cast<double>(step))}}}, {});
    }
  }
  std::string file(int64_t step) const {
    return (run_ / "checkpoints" / ("step-" + std::to_string(step)) / "model.safetensors").string();
  }
  /// A bit of the last weight, which no reader of the format could notice.
  void damage(int64_t step) const {
    std::string bytes = read_file(file(step));
    bytes.back() ^= 1;
    write_file_atomically(file(step), bytes);
  }
  double first_weight() {
    const auto weights =
        read_weights(run_.string(), [this](const std::string& line) { notices_.push_back(line); });
    return weights.at("w")[0].item<double>();
  }

  const TemporaryFolder folder_;
  const std::filesystem::path run_ = folder_.path() / "run";
  std::vector<std::string> notices_;
};

TEST_F(PretrainedRun, C6TheNewestCheckpointThatIsWhole) {
  EXPECT_EQ(first_weight(), 2);
  EXPECT_TRUE(notices_.empty());
  damage(2);
  EXPECT_EQ(first_weight(), 1);
  EXPECT_EQ(notices_, std::vector<std::string>{
                          (run_ / "checkpoints/step-2").string() + ": can not be used: " + file(2) +
                          ": its checksum must be the one in state.json, is not"});
}

TEST_F(PretrainedRun, C6NothingIsReadWhereAllAreDamaged) {
  damage(1);
  damage(2);
  EXPECT_EQ(error_message<DataError>([&] { first_weight(); }),
            run_.string() +
                ": must have a whole checkpoint to read weights from, each of its 2 is damaged "
                "(train it again, or give a safetensors file)");
  EXPECT_EQ(notices_.size(), 2U);
  std::filesystem::remove_all(run_ / "checkpoints/step-1");
  std::filesystem::remove_all(run_ / "checkpoints/step-2");
  EXPECT_EQ(error_message<DataError>([&] { first_weight(); }),
            run_.string() + ": must have a checkpoint to read weights from, has none");
}

// Its trained weights are another model than the one whose numbers the run tells.
TEST_F(PretrainedRun, OfARunThatIsMeasuredByItsAverageIsTheAverage) {
  store::save_checkpoint(
      run_ / "checkpoints", {.step = 3},
      {.model = {{"w", torch::full({3}, 3.0)}}, .average = {{"w", torch::full({3}, 2.5)}}}, {});
  const auto set_weights = [this](const std::string& name) {
    write_file_atomically(run_ / "config.toml", "[train]\neval_weights = \"" + name + "\"\n");
  };
  set_weights("trained");
  EXPECT_EQ(first_weight(), 3);
  EXPECT_TRUE(notices_.empty());
  set_weights("ema");
  EXPECT_EQ(first_weight(), 2.5);
  EXPECT_EQ(notices_,
            std::vector<std::string>{"weights: " + run_.string() +
                                     ": the average of its weights, which it is measured by "
                                     "(train.eval_weights)"});
}

struct Parity {
  at::Tensor pixels;  ///< normalized (16, 3, 224, 224)
  at::Tensor logits;  ///< (16, 1000), computed elsewhere in double from the same weights
  at::Tensor labels;  ///< (16)
};

Parity read_parity(const std::filesystem::path& folder) {
  std::string bytes =
      data::read_plain_or_xz(folder / "imagenet16_images_224x224x3.u8", 16 * 224 * 224 * 3);
  Parity parity;
  const at::Tensor pictures =
      torch::from_blob(bytes.data(), {16, 224, 224, 3}, torch::kByte).to(torch::kFloat) / 255.0;
  const at::Tensor mean = torch::tensor({0.485, 0.456, 0.406}),
                   std = torch::tensor({0.229, 0.224, 0.225});
  parity.pixels = ((pictures - mean) / std).permute({0, 3, 1, 2}).contiguous();
  std::string numbers = read_file(folder / "imagenet16_logits_16x1000.f32");
  parity.logits = torch::from_blob(numbers.data(), {16, 1000}, torch::kFloat).clone();
  std::ifstream table(folder / "imagenet16_labels.tsv");
  std::string line;
  std::vector<int64_t> labels;
  std::getline(table, line);
  while (std::getline(table, line)) labels.push_back(std::stoll(line.substr(line.find('\t') + 1)));
  parity.labels = torch::tensor(labels);
  return parity;
}

int64_t num_right(const at::Tensor& logits, const at::Tensor& labels) {
  return (logits.argmax(1) == labels).sum().item<int64_t>();
}

TEST(PretrainedDeit, SaysWhatWasPublished) {
  const auto folder = data::locate_data("imagenet-16");
  if (!folder) GTEST_SKIP() << "deit-tiny is not below $ELLIPTICAL_DATA";
  const Parity parity = read_parity(*folder);
  ASSERT_EQ(parity.labels.size(0), 16);
  const auto plain = make_image_model("vit", {"attention.name=softmax"}, 1000);
  EXPECT_TRUE(load_pretrained(*plain, "deit-tiny").empty());
  const at::Tensor logits = evaluate(*plain, parity.pixels);
  // Twelve layers in float32 against double, on logits up to 10; half floats are exact in both.
  EXPECT_LE((logits - parity.logits).abs().max().item<double>(), 1e-4);
  EXPECT_TRUE(at::equal(logits.argmax(1), parity.logits.argmax(1)));

  // The same weights with a metric: other answers, but answers of the same network.
  const auto elliptical = make_image_model("vit", {"attention.name=elliptical"}, 1000);
  EXPECT_TRUE(load_pretrained(*elliptical, "deit-tiny").empty());
  const at::Tensor moved = evaluate(*elliptical, parity.pixels);
  const double drift = (moved - logits).square().mean().sqrt().item<double>();
  EXPECT_GT(drift, 0.01);
  EXPECT_LT(drift, logits.std().item<double>());
  EXPECT_GE(num_right(moved, parity.labels), num_right(logits, parity.labels) / 2);
  RecordProperty("largest_error",
                 std::to_string((logits - parity.logits).abs().max().item<double>()));
  RecordProperty("plain_right", std::to_string(num_right(logits, parity.labels)));
  RecordProperty("elliptical_right", std::to_string(num_right(moved, parity.labels)));
  RecordProperty("rms_drift", std::to_string(drift));
  RecordProperty("rms_logits", std::to_string(logits.square().mean().sqrt().item<double>()));
}

TEST(PretrainedDeit, WorksAtAnotherSizeAndWithOtherClasses) {
  if (!data::locate_data("imagenet-16")) GTEST_SKIP() << "deit-tiny is not below $ELLIPTICAL_DATA";
  const auto model = make_image_model("vit", {"image_size=64"}, 10);
  const auto notices = load_pretrained(*model, "deit-tiny");
  ASSERT_EQ(notices.size(), 3u);
  EXPECT_EQ(notices[2], "deit-tiny: pos_embed is resized from 14 x 14 to 4 x 4 patches");
  EXPECT_TRUE(evaluate(*model, some_pixels(2, 64)).isfinite().all().item<bool>());
}

}  // namespace
}  // namespace elliptical::tasks
