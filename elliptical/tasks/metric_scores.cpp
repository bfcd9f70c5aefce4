// SPDX-License-Identifier: MIT
#include "elliptical/tasks/metric_scores.h"

#include <torch/torch.h>

namespace elliptical::tasks {

void score_metric(const nn::MetricStatistics& statistics, bool profile, Scores& scores) {
  for (const auto& [layer, sums] : statistics.layers()) {
    const auto coordinates = sums.coordinate_sums.accessor<double, 2>();
    const auto anisotropies = sums.anisotropy_sums.accessor<double, 1>();
    const int64_t D = coordinates.size(1);
    for (int64_t h = 0; h < coordinates.size(0); ++h) {
      const Scores::Labels head = {{"head", h}, {"layer", layer}};
      double total = 0;
      for (int64_t i = 0; i < D; ++i) {
        total += coordinates[h][i];
        if (!profile) continue;
        scores.add("metric_profile", coordinates[h][i], sums.num_rows,
                   {{"coordinate", i}, {"head", h}, {"layer", layer}});
      }
      scores.add("metric_mean", total, sums.num_rows * D);
      scores.add("metric_head_mean", total, sums.num_rows * D, head);
      scores.add("metric_head_anisotropy", anisotropies[h], sums.num_rows, head);
    }
  }
}

}  // namespace elliptical::tasks
