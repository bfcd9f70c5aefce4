// SPDX-License-Identifier: MIT
//
// Mean corruption error (Hendrycks and Dietterich 2019): errors under damage, in per cent of those
// of AlexNet,
//     CE_c = sum_s E_{c,s} / sum_s A_{c,s}          mCE = 100 mean_c CE_c
// with the top-1 errors E of the model and A of AlexNet at the severities s = 1..5. The relative
// form takes the clean error off both: how much worse damage makes a model.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "elliptical/data/corrupt/corruption.h"

namespace elliptical::data {

/// Top-1 errors (shares, not per cent) of one corruption, by severity.
struct CorruptionErrors {
  std::string name;
  std::array<double, kNumSeverities> errors{};

  double mean() const;
};

/// AlexNet on ImageNet-C; one entry for each of corruption_table(), in its order.
const std::vector<CorruptionErrors>& alexnet_errors();

constexpr double kAlexnetCleanError = 0.4348;

/// CE of one corruption as a ratio: 1 is as bad as AlexNet. UsageError for an unknown name.
double corruption_error(const CorruptionErrors& model);
double relative_corruption_error(const CorruptionErrors& model, double clean_error);

/// mCE in per cent, over the 15 main or the 4 extra corruptions. UsageError unless `model` holds
/// each of that group once; others are left out.
double mean_corruption_error(const std::vector<CorruptionErrors>& model, CorruptionGroup group);
double relative_mean_corruption_error(const std::vector<CorruptionErrors>& model,
                                      double clean_error,
                                      CorruptionGroup group);

}  // namespace elliptical::data
