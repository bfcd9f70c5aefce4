// SPDX-License-Identifier: MIT
//
// What an evaluation records of the metrics of a model: docs/records.md.
#pragma once

#include "elliptical/nn/attention/metric_statistics.h"
#include "elliptical/tasks/task.h"

namespace elliptical::tasks {

/// Adds sums whose means are `metric_mean`, `metric_head_mean`, `metric_head_anisotropy` and, with
/// `profile`, `metric_profile`; nothing for a model without metric.
void score_metric(const nn::MetricStatistics& statistics, bool profile, Scores& scores);

}  // namespace elliptical::tasks
