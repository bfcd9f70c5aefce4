// SPDX-License-Identifier: MIT
#include "elliptical/tasks/classify_image.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cmath>

#include "elliptical/base/config.h"
#include "elliptical/base/errors.h"
#include "elliptical/store/checkpoint.h"
#include "elliptical/store/tensor_files.h"
#include "tests/support/error_message.h"
#include "tests/support/passes.h"
#include "tests/support/small_pictures_task.h"
#include "tests/support/temporary_folder.h"

namespace elliptical::tasks {
namespace {

using support::small_vit;
using support::small_vit_options;
using test::error_message;

std::string refusal(const ClassifyImageOptions& options) {
  return error_message<std::exception>([&] { ClassifyImageTask(options, 1); });
}

TEST(ClassifyImageTask, BatchesAreAFunctionOfTheStep) {
  const ClassifyImageTask task(small_vit_options(), 1), same(small_vit_options(), 1),
      other(small_vit_options(), 2);
  const Batch seventh = task.train_batch(7);
  task.train_batch(3);
  const Batch again = task.train_batch(7), elsewhere = same.train_batch(7);
  for (const Batch* batch : {&again, &elsewhere}) {
    EXPECT_TRUE(at::equal(seventh.input, batch->input));
    EXPECT_TRUE(at::equal(seventh.target, batch->target));
  }
  EXPECT_FALSE(at::equal(seventh.input, other.train_batch(7).input)) << "seed";
  EXPECT_FALSE(at::equal(seventh.input, task.train_batch(8).input));
  EXPECT_EQ(seventh.num_units, 4);
  EXPECT_TRUE(seventh.target.sum(1).allclose(at::ones({4})));
}

// Over the classes one by one, in double.
TEST(ClassifyImageTask, LossIsCrossEntropyWithSharesOfClasses) {
  ClassifyImageTask task(small_vit_options(), 1);
  const Batch batch = task.train_batch(0);
  const double loss = support::loss_of(task, batch, 5).item<double>();
  task.model().eval();
  const at::Tensor logits = support::logits_of(task, batch.input, false).to(at::kDouble);
  double expected = 0;
  for (int64_t b = 0; b < 4; ++b) {
    double sum = 0;
    for (int64_t k = 0; k < 10; ++k) sum += std::exp(logits[b][k].item<double>());
    for (int64_t k = 0; k < 10; ++k) {
      const double log_probability = logits[b][k].item<double>() - std::log(sum);
      expected -= batch.target[b][k].item<double>() * log_probability / 4;
    }
  }
  EXPECT_NEAR(loss, expected, 1e-5);  // float: logits of order 1 in a dozen operations
}

TEST(ClassifyImageTask, LossRepeatsWithItsKeyAndReachesEveryParameter) {
  ClassifyImageOptions options = small_vit_options();
  small_vit(options).drop_path = 0.5;
  ClassifyImageTask task(options, 1), same(options, 1);
  const Batch batch = task.train_batch(0);
  const at::Tensor loss = support::loss_of(task, batch, 5);
  EXPECT_TRUE(at::equal(loss, support::loss_of(same, batch, 5)));
  EXPECT_FALSE(at::equal(loss, support::loss_of(task, batch, 6))) << "stochastic depth";
  small_vit(options).drop_path = 0.0;
  ClassifyImageTask whole(options, 1);
  support::loss_of(whole, batch, 5).backward();
  for (const auto& item : whole.model().named_parameters()) {
    EXPECT_TRUE(item.value().grad().defined()) << item.key();
  }
}

/// A teacher's weights as a file, and the options of a student of it.
class TeacherTest : public ::testing::Test {
 protected:
  TeacherTest() {
    ClassifyImageTask teacher(small_vit_options(), 77);
    store::write_tensors(file_, store::named_tensors(teacher.model()));
    options_ = small_vit_options();
    options_.teacher.kind = TeacherKind::kHard;
    options_.teacher.weights = file_;
    options_.teacher.model = options_.model;
    small_vit(options_).distilled = true;
  }

  const test::TemporaryFolder folder_;
  const std::string file_ = (folder_.path() / "teacher.safetensors").string();
  ClassifyImageOptions options_;
};

TEST_F(TeacherTest, SecondHeadLearnsWhatTheTeacherSays) {
  ClassifyImageTask teacher(small_vit_options(), 77);
  teacher.model().eval();
  for (const TeacherKind kind : {TeacherKind::kHard, TeacherKind::kSoft}) {
    options_.teacher.kind = kind;
    options_.teacher.share = 1.0;  // the second head alone
    options_.teacher.temperature = 2.0;
    ClassifyImageTask student(options_, 1);
    const Batch batch = student.train_batch(0);
    const at::Tensor loss = support::loss_of(student, batch, 1);
    const at::Tensor said = support::logits_of(teacher, batch.input, false).to(at::kDouble);
    // What the head says, by training mode: evaluation would give the mean of both heads.
    auto pass = nn::Pass::of_training(RandomKey(0));
    student.forward(batch, pass);
    const at::Tensor head = pass.outputs.at(models::kSecondHead).to(at::kDouble);
    double expected = 0;
    for (int64_t b = 0; b < 4; ++b) {
      const double tau = kind == TeacherKind::kSoft ? 2.0 : 1.0;
      const at::Tensor p = (said[b] / tau).softmax(0), q = (head[b] / tau).softmax(0);
      const auto best = said[b].argmax().item<int64_t>();
      if (kind == TeacherKind::kHard) expected -= std::log(q[best].item<double>()) / 4;
      for (int64_t k = 0; k < 10 && kind == TeacherKind::kSoft; ++k) {
        const double pk = p[k].item<double>(), qk = q[k].item<double>();
        expected += tau * tau * pk * std::log(pk / qk) / 40;
      }
    }
    EXPECT_NEAR(loss.item<double>(), expected, 1e-5);
    loss.backward();
    EXPECT_TRUE(student.model().named_parameters()["head_dist.weight"].grad().defined());
  }
}

TEST_F(TeacherTest, TermsOfBothHeadsAreSeenApart) {
  for (const TeacherKind kind : {TeacherKind::kNone, TeacherKind::kHard}) {
    options_.teacher.kind = kind;
    options_.teacher.share = 0.25;
    ClassifyImageTask student(options_, 1);
    const Batch batch = student.train_batch(0);
    auto pass = nn::Pass::of_training(RandomKey(1));
    const Loss loss = student.loss(batch, pass);
    ASSERT_EQ(loss.parts.size(), 2);
    EXPECT_TRUE(at::equal(loss.parts.at("first_head") + loss.parts.at("second_head"), loss.total));
    // That of the first head is its share of what it would be alone.
    options_.teacher.share = 0.0;
    ClassifyImageTask alone(options_, 1);
    EXPECT_NEAR(loss.parts.at("first_head").item<double>(),
                0.75 * support::loss_of(alone, batch, 1).item<double>(), 1e-6);
  }
  small_vit(options_).distilled = false;
  options_.teacher.kind = TeacherKind::kNone;
  ClassifyImageTask plain(options_, 1);
  auto pass = nn::Pass::of_training(RandomKey(1));
  EXPECT_TRUE(plain.loss(plain.train_batch(0), pass).parts.empty());
}

TEST_F(TeacherTest, RefusesTeachersThatDoNotFit) {
  small_vit(options_).distilled = false;
  EXPECT_EQ(refusal(options_),
            "teacher: the model must have a second head, model.distilled = true of vit, has none");
  small_vit(options_).distilled = true;
  options_.teacher.weights = "";
  EXPECT_NE(refusal(options_).find("teacher: weights must be a run folder or weights of a model"),
            std::string::npos);
  options_.teacher.weights = (folder_.path() / "none").string();
  EXPECT_NE(refusal(options_).find("none must be a safetensors file"), std::string::npos)
      << refusal(options_);
}

TEST_F(TeacherTest, OfAnotherSizeSeesResizedPictures) {
  ClassifyImageOptions larger = small_vit_options();
  small_vit(larger).image_size = 32;
  ClassifyImageTask teacher(larger, 77);
  teacher.model().eval();
  store::write_tensors(file_, store::named_tensors(teacher.model()));
  options_.teacher.model = larger.model;
  options_.teacher.share = 1.0;
  ClassifyImageTask student(options_, 1);
  const Batch batch = student.train_batch(0);
  ASSERT_EQ(batch.input.size(2), 16);
  const at::Tensor seen =
      at::upsample_bicubic2d(batch.input, {32, 32}, /*align_corners=*/false).clamp(0, 1);
  const at::Tensor said = support::logits_of(teacher, seen, false).argmax(1);
  auto pass = nn::Pass::of_training(RandomKey(0));
  student.forward(batch, pass);
  const at::Tensor head = pass.outputs.at(models::kSecondHead);
  EXPECT_NEAR(support::loss_of(student, batch, 1).item<double>(),
              torch::cross_entropy_loss(head, said).item<double>(), 1e-5);
}

TEST_F(TeacherTest, WeightsCanBeTheStart) {
  ClassifyImageOptions options = small_vit_options();
  options.init = file_;
  ClassifyImageTask task(options, 1), teacher(small_vit_options(), 77);
  const auto& parameters = teacher.model().named_parameters();
  for (const auto& item : task.model().named_parameters()) {
    EXPECT_TRUE(item.value().equal(parameters[item.key()])) << item.key();
  }
}

// A checkpoint has all weights, and whoever measures learns nothing.
TEST_F(TeacherTest, WeightsAreReadOnlyWhereTheyAreNeeded) {
  options_.init = options_.teacher.weights = (folder_.path() / "gone").string();
  EXPECT_NE(refusal(options_).find("gone must be a safetensors file"), std::string::npos);
  ClassifyImageTask(options_, {1, TaskUse::kMeasuring});
  EXPECT_NE(error_message<SetupError>([&] {
              ClassifyImageTask(options_, {1, TaskUse::kTraining});
            }).find("gone must be a safetensors file"),
            std::string::npos)
      << "the teacher";
  options_.teacher.weights = file_;
  ClassifyImageTask(options_, {1, TaskUse::kTraining});
}

// A run is a teacher, or a start, with the newest of its checkpoints that is whole; C6.
TEST_F(TeacherTest, DamagedCheckpointsAreNamedAndOlderOnesUsed) {
  const std::filesystem::path run = folder_.path() / "run", checkpoints = run / "checkpoints";
  std::filesystem::create_directories(checkpoints);
  for (const int64_t step : {1, 2}) {
    ClassifyImageTask teacher(small_vit_options(), 70 + step);
    store::save_checkpoint(checkpoints, {.step = step},
                           {.model = store::named_tensors(teacher.model())}, {});
  }
  const std::filesystem::path newest = checkpoints / "step-2" / "model.safetensors";
  std::filesystem::resize_file(newest, std::filesystem::file_size(newest) - 1);
  options_.teacher.weights = run.string();
  small_vit(options_).distilled = true;
  const ClassifyImageTask student(options_, 1);
  const auto names_it = [&](const std::string& line) {
    return line.starts_with((checkpoints / "step-2").string() + ": can not be used: ");
  };
  const auto names_it_once = [&](const std::vector<std::string>& notices) {
    return std::count_if(notices.begin(), notices.end(), names_it) == 1;
  };
  EXPECT_TRUE(names_it_once(student.notices())) << "teacher";

  ClassifyImageOptions plain = small_vit_options();
  plain.init = run.string();
  ClassifyImageTask started(plain, 1), first(small_vit_options(), 71);
  EXPECT_TRUE(names_it_once(started.notices())) << "start";
  for (const auto& item : started.model().named_parameters()) {
    EXPECT_TRUE(item.value().equal(first.model().named_parameters()[item.key()])) << item.key();
  }
  std::filesystem::resize_file(checkpoints / "step-1" / "state.json", 10);
  EXPECT_NE(error_message<DataError>([&] {
              ClassifyImageTask(plain, 1);
            }).find("must have a whole checkpoint to read weights from"),
            std::string::npos);
}

TEST_F(TeacherTest, SaysHowTheStartWasMadeToFit) {
  ClassifyImageOptions options = small_vit_options();
  options.init = file_;
  EXPECT_TRUE(ClassifyImageTask(options, 1).notices().empty());
  small_vit(options).image_size = 32;
  EXPECT_EQ(ClassifyImageTask(options, 1).notices(),
            std::vector<std::string>{file_ + ": pos_embed is resized from 4 x 4 to 8 x 8 patches"});
}

TEST(ClassifyImageTask, LabelsAndFingerprint) {
  const ClassifyImageTask task(small_vit_options(), 1);
  const auto labels = task.labels();
  EXPECT_EQ(std::get<std::string>(labels.at("task")), "classify_image");
  EXPECT_EQ(std::get<std::string>(labels.at("model")), "vit");
  EXPECT_EQ(std::get<std::string>(labels.at("attention")), "elliptical");
  EXPECT_EQ(task.data_fingerprint(), ClassifyImageTask(small_vit_options(), 2).data_fingerprint());
}

/// The label `batch_size` of an evaluation of ten pictures at once; 0 where there is none.
int64_t told_batch_size(const std::vector<std::string>& attention) {
  ClassifyImageOptions options = small_vit_options();
  apply_overrides(attention, fields_of(options));
  ClassifyImageTask task(options, 1);
  const std::unique_ptr<Options> eval_options = task.make_eval_options();
  apply_overrides({"batch_size=10"}, fields_of(*eval_options));
  const auto labels = task.eval_set(*eval_options)->labels();
  const auto found = labels.find("batch_size");
  return found == labels.end() ? 0 : std::get<int64_t>(found->second);
}

// Pictures of other company have other logits: without its size such a number can not be had again.
TEST(ClassifyImageTask, RecordsTellTheBatchWhereItMatters) {
  const std::string name = "model.attention.name=";
  EXPECT_EQ(told_batch_size({name + "softmax"}), 0);
  EXPECT_EQ(told_batch_size({name + "elliptical"}), 0);
  EXPECT_EQ(told_batch_size({name + "mom"}), 0);
  EXPECT_EQ(told_batch_size({name + "mom", "model.attention.selection=global"}), 10);
  EXPECT_EQ(told_batch_size({name + "spkde"}), 10);
  EXPECT_EQ(told_batch_size({name + "spkde", "model.attention.weights=per-head"}), 0);
  EXPECT_EQ(told_batch_size({name + "elliptical", "model.attention.metric.estimator=random"}), 10);
}

TEST(ClassifyImageTask, CostsWhatTheArithmeticSays) {
  ClassifyImageOptions options;  // DeiT-tiny
  options.data.name = "imagenet";
  options.batch_size = 1024;
  const Cost cost = classify_image_cost(options);
  EXPECT_EQ(cost.num_parameters, 5717416);
  EXPECT_EQ(cost.units_per_epoch, 1251 * 1024);
  // 1.25 G multiplications with additions forward, as everybody counts for DeiT-tiny at 224.
  EXPECT_NEAR(cost.flops_per_step / 1024 / 3 / 2, 1.25e9, 0.03e9);
}

TEST(ClassifyImageTask, CostsOfStagesCountTheirOwnTokens) {
  const auto cost_of = [](const char* model) {
    ClassifyImageOptions options;
    options.data.name = "imagenet";
    options.batch_size = 1;
    options.model = ChosenOptions(models::image_model_choices(), model);
    return classify_image_cost(options);
  };
  // RVT-Ti: 10 layers of 196 tokens, 192 wide, and 2 of 49, 384 wide; 1.3 G are published.
  const Cost rvt = cost_of("rvt");
  EXPECT_NEAR(rvt.flops_per_step / 3 / 2, 1.25e9, 0.08e9);
  const double kept = 17.0 * 4 * (10 * 196 * 192 + 2 * 49 * 384);
  EXPECT_EQ(rvt.bytes, 16.0 * static_cast<double>(rvt.num_parameters) + kept);
  // FAN-T: 1.3 G are published; its class attention works on one token.
  EXPECT_NEAR(cost_of("fan").flops_per_step / 3 / 2, 1.35e9, 0.05e9);
}

TEST(ClassifyImageTask, RehearsesWithoutTheData) {
  ClassifyImageOptions options = small_vit_options();
  options.data.name = "cifar-100";
  options.batch_size = 100;
  const std::unique_ptr<Task> task = rehearse_classify_image(options);
  const Batch batch = task->train_batch(0);
  EXPECT_EQ(batch.num_units, 8);
  EXPECT_EQ(batch.target.size(1), 100);
  EXPECT_TRUE(support::loss_of(*task, batch, 1).isfinite().item<bool>());
}

TEST(ClassifyImageTask, OptionsSurvivePrinting) {
  ClassifyImageOptions options = small_vit_options(), read;
  options.teacher.kind = TeacherKind::kSoft;
  const std::string text = to_toml(fields_of(options));
  read_recipe_text(text, "printed", fields_of(read));
  EXPECT_EQ(to_toml(fields_of(read)), text);
}

TEST(ClassifyImageTask, EveryOptionOfTheDataHasAnEffect) {
  const at::Tensor usual = ClassifyImageTask(small_vit_options(), 1).train_batch(1).input;
  const at::Tensor targets = ClassifyImageTask(small_vit_options(), 1).train_batch(1).target;
  for (const char* change :
       {"data.repeats=2", "data.augment.mirror_probability=1", "data.augment.crop.kind=whole",
        "data.augment.crop.min_area=0.5", "data.augment.rand_augment.num_operations=0",
        "data.augment.rand_augment.magnitude=1", "data.augment.erase.probability=1",
        "data.augment.patches.probability=1", "mix.probability=0", "mix.mixup_alpha=0",
        "mix.cutmix_alpha=0"}) {
    ClassifyImageOptions options = small_vit_options();
    apply_overrides({change}, fields_of(options));
    EXPECT_FALSE(ClassifyImageTask(options, 1).train_batch(1).input.equal(usual)) << change;
  }
  ClassifyImageOptions options = small_vit_options();
  options.mix.label_smoothing = 0.3;
  EXPECT_FALSE(ClassifyImageTask(options, 1).train_batch(1).target.equal(targets));
  options = small_vit_options();
  options.data.mean = {0.5, 0.5, 0.5};
  options.data.std = {0.25, 0.25, 0.25};
  const at::Tensor pixels = at::full({1, 3, 16, 16}, 0.75);
  EXPECT_TRUE(ClassifyImageTask(options, 1).normalize(pixels).allclose(at::ones({1})));
  EXPECT_FALSE(ClassifyImageTask(small_vit_options(), 1).normalize(pixels).allclose(at::ones({1})));
}

TEST(ClassifyImageTask, RefusesWhatMakesNoSense) {
  ClassifyImageOptions options = small_vit_options();
  options.batch_size = 5;
  EXPECT_EQ(refusal(options),
            "task: batch_size must be even, so that every picture has one to be mixed with, got 5 "
            "(or set task.mix.probability=0)");
  options.mix.probability = 0;
  EXPECT_EQ(refusal(options), "no error");
  options = small_vit_options();
  options.data.std = {0.5, 0.5};
  EXPECT_EQ(refusal(options),
            "data: std must be three numbers above 0, red, green and blue, got 2 or one that is "
            "not");
  options = small_vit_options();
  options.data.augment.crop.min_area = 0.9;
  options.data.augment.crop.max_area = 0.5;
  EXPECT_EQ(refusal(options),
            "data: augment.crop.min_area must be at most max_area, got min_area = 0.9, max_area = "
            "0.5");
  options = small_vit_options();
  small_vit(options).image_size = 18;
  EXPECT_EQ(refusal(options),
            "model: image_size must be a multiple of patch_size, got image_size = 18, patch_size = "
            "4");
  options = small_vit_options();
  options.init = "nowhere/model.safetensors";
  EXPECT_NE(refusal(options).find("nowhere/model.safetensors must be a safetensors file"),
            std::string::npos);
}

}  // namespace
}  // namespace elliptical::tasks
