// SPDX-License-Identifier: MIT
//
// What is measured of language models (language_model.h, lm_evaluation.h): perplexity, on text as
// it is and with swapped words. Plain data, without torch.
#pragma once

#include <array>
#include <cmath>
#include <cstdio>
#include <string>

#include "elliptical/measure/task_measures.h"

namespace elliptical::tasks {

inline constexpr measure::Measure kPerplexity{
    .name = "perplexity", .unit = "%", .is_ratio = true, .margin = 0.05};

inline constexpr const char* kWordSwap = "word_swap";

/// Swapped text is measured whole and in two parts: what damaged context costs, and what it costs
/// to predict the swapped-in word.
inline constexpr std::array kLanguageModelNumbers = {
    measure::ComparedNumber{.name = "clean",
                            .place = "on clean text",
                            .measure = &kPerplexity,
                            .metric = "perplexity",
                            .block_metric = "block_nll",
                            .targets = "all"},
    measure::ComparedNumber{.name = "swapped",
                            .place = "on swapped text",
                            .measure = &kPerplexity,
                            .condition = measure::Condition::kDamaged,
                            .perturbation = kWordSwap,
                            .metric = "perplexity",
                            .block_metric = "block_nll",
                            .targets = "all"},
    measure::ComparedNumber{.name = "clean targets, swapped text",
                            .place = "on clean targets in swapped text",
                            .measure = &kPerplexity,
                            .condition = measure::Condition::kDamaged,
                            .perturbation = kWordSwap,
                            .metric = "perplexity_clean_targets",
                            .block_metric = "block_nll",
                            .targets = "clean"},
    measure::ComparedNumber{.name = "swapped targets",
                            .place = "on swapped targets",
                            .measure = &kPerplexity,
                            .condition = measure::Condition::kDamaged,
                            .perturbation = kWordSwap,
                            .metric = "perplexity_swapped_targets",
                            .block_metric = "block_nll",
                            .targets = "swapped"},
};

inline constexpr std::array kWordSwapDetails = {"profile", "swap_seed", "swap_unit"};

inline std::string word_swap_words(const std::string& /*kind*/, double rate) {
  char text[64];
  std::snprintf(text, sizeof text, "Swapped: %.3g %% of the words", 100 * rate);
  return text;
}

inline constexpr std::array kLanguageModelPerturbations = {
    measure::Perturbation{.name = kWordSwap,
                          .damaged = "swapped",
                          .strength = {.flag = "swap",
                                       .option = "swap_rate",
                                       .label = "swap_rate",
                                       .kind = measure::Parameter::Kind::kNumber,
                                       .usual = "0.025",
                                       .low = 0,
                                       .high = 1,
                                       .help = "rate of swapped words; 0: clean text only",
                                       .eval_help = "rate of swapped words, 0.025 in the paper",
                                       .off = "0"},
                          .details = kWordSwapDetails,
                          .words = word_swap_words}};

inline constexpr std::array kLanguageModelMethods = {"block", "sliding", "stream"};

inline constexpr std::array kLanguageModelOptions = {
    measure::EvalOption{"columns", "columns", "10"},
    measure::EvalOption{"profile", "swap_profile", "strict"},
    measure::EvalOption{"stride", "stride", "1"},
    measure::EvalOption{"swap_seed", "swap_seed", "1"},
    measure::EvalOption{"swap_unit", "swap_unit", "line"},
};

/// Nothing but what was trained on is read, whatever records call it.
inline constexpr std::array kLanguageModelTrainedOptions = {
    measure::EvalOption{"metric_scope", "metric_scope", "task.model.attention.metric.scope"},
    measure::EvalOption{"window", "window", "task.model.window"},
};

inline double nats_of_perplexity(double perplexity) { return std::log(perplexity); }

inline constexpr measure::TaskMeasures kLanguageModelMeasures{
    .task = "language_model",
    .data = "text",
    .numbers = kLanguageModelNumbers,
    .perturbations = kLanguageModelPerturbations,
    .methods = kLanguageModelMethods,
    .method_help =
        "of text: block, sliding (the paper's, a pass of the model for each token) or stream",
    .options = kLanguageModelOptions,
    .trained_options = kLanguageModelTrainedOptions,
    .loss_metric = "perplexity",
    .nats = nats_of_perplexity,
    .loss_lead = "Loss in nats, per token.",
    .lead =
        "A swapped word costs twice: it is hard to predict itself, and it misleads the "
        "prediction of what follows. Targets that were swapped and targets that were not are "
        "counted apart."};

}  // namespace elliptical::tasks
