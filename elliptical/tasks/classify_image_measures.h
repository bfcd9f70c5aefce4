// SPDX-License-Identifier: MIT
//
// What is measured of classifiers of pictures (classify_image.h, image_evaluation.h): accuracy, on
// pictures as they are, corrupted and attacked, and the mean corruption error. Plain data, without
// torch.
#pragma once

#include <array>
#include <cstdio>
#include <string>

#include "elliptical/measure/task_measures.h"

namespace elliptical::tasks {

inline constexpr measure::Measure kAccuracy{.name = "accuracy",
                                            .unit = "points",
                                            .value_unit = "%",
                                            .higher_is_better = true,
                                            .margin = 0.05};
inline constexpr measure::Measure kCorruptionError{
    .name = "mCE",
    .unit = "points",
    .value_unit = "%",
    .margin = 0.05,
    .remark = "mCE is the mean corruption error, AlexNet = 100: lower is better."};

inline constexpr const char* kCorruption = "corruption";

inline constexpr std::array kClassifyImageNumbers = {
    measure::ComparedNumber{.name = "clean",
                            .place = "on clean pictures",
                            .measure = &kAccuracy,
                            .metric = "accuracy",
                            .block_metric = "block_accuracy"},
    measure::ComparedNumber{.name = "corrupted",
                            .place = "on corrupted pictures",
                            .measure = &kAccuracy,
                            .condition = measure::Condition::kDamaged,
                            .perturbation = kCorruption,
                            .metric = "accuracy",
                            .block_metric = "block_accuracy"},
    measure::ComparedNumber{.name = "mCE",
                            .place = "in mCE",
                            .measure = &kCorruptionError,
                            .condition = measure::Condition::kDamaged,
                            .perturbation = kCorruption,
                            .metric = "mce",
                            .block_metric = "block_mce",
                            .has_own_section = true},
    measure::ComparedNumber{.name = "",
                            .place = "",
                            .measure = &kAccuracy,
                            .condition = measure::Condition::kAttacked,
                            .metric = "robust_accuracy",
                            .block_metric = "block_robust_accuracy",
                            .has_own_section = true},
};

inline constexpr std::array kCorruptionDetails = {"corruption_seed", "corruption_jpeg"};

inline std::string corruption_words(const std::string& corruption, double severity) {
  char text[32] = "all severities";
  if (severity > 0) std::snprintf(text, sizeof text, "severity %g", severity);
  return "Corrupted: " + corruption + ", " + text;
}

inline constexpr std::array kClassifyImagePerturbations = {measure::Perturbation{
    .name = kCorruption,
    .damaged = "corrupted",
    .kind = measure::Parameter{.flag = "corrupt",
                               .option = "corrupt",
                               .label = "corruption",
                               .kind = measure::Parameter::Kind::kText,
                               .usual = "gaussian_noise",
                               .help = "of pictures: names with commas, main, all, extra, or "
                                       "none: clean pictures only",
                               .eval_help = "of pictures: corruptions with commas, main, extra or "
                                            "all",
                               .off = "none"},
    .strength = {.flag = "severity",
                 .option = "severity",
                 .label = "severity",
                 .kind = measure::Parameter::Kind::kWhole,
                 .usual = "3",
                 .low = 0,
                 .high = 5,
                 .help = "of corruptions; 0: all five",
                 .eval_help = "of corruptions, 1 to 5; 0: all five"},
    .details = kCorruptionDetails,
    .words = corruption_words}};

inline constexpr std::array kClassifyImageOptions = {
    measure::EvalOption{"corruption_seed", "corruption_seed", "1"},
    measure::EvalOption{"corruption_jpeg", "corruption_jpeg", "false"},
    measure::EvalOption{"max_pictures", "max_pictures", "0"},
    measure::EvalOption{"batch_size", "batch_size", "64"},
};

inline constexpr std::array kClassifyImageTrainedOptions = {
    measure::EvalOption{"data", "data", "task.data.name"},
};

inline constexpr std::array kCorruptionErrors = {
    measure::DamageError{"mce", "Mean corruption error"},
    measure::DamageError{"extra_mce", "The same of extra corruptions"}};

inline double nats_of_loss(double loss) { return loss; }

inline constexpr measure::TaskMeasures kClassifyImageMeasures{
    .task = "classify_image",
    .data = "pictures",
    .numbers = kClassifyImageNumbers,
    .perturbations = kClassifyImagePerturbations,
    .has_pictures = true,
    .is_attacked = true,
    .options = kClassifyImageOptions,
    .trained_options = kClassifyImageTrainedOptions,
    .has_balanced_blocks = true,
    .loss_metric = "loss",
    .nats = nats_of_loss,
    .loss_lead = "Loss in nats, per picture.",
    .robustness = {.undamaged = "clean_accuracy",
                   .attacked = "robust_accuracy",
                   .attack_lead = "the largest change of a number of a picture; at 0 nothing is "
                                  "changed.",
                   .by_damage = "corrupted_accuracy",
                   .errors = kCorruptionErrors,
                   .error_axis = "mean corruption error, AlexNet = 100"},
    .lead = "The share of pictures whose class comes first, in percent."};

}  // namespace elliptical::tasks
