// SPDX-License-Identifier: MIT
#include "elliptical/ops/metric_estimators.h"

#include <c10/util/Exception.h>

#include "elliptical/base/names.h"

namespace elliptical::ops {

MetricEstimator metric_estimator(std::string_view name) {
  MetricEstimator estimator;
  estimator.index_ = MetricEstimator::index_of(name);
  TORCH_CHECK_VALUE(estimator.index_ < estimator_table::kRows.size(),
                    "metric: estimator: ", unknown_name(name, metric_estimator_names()));
  return estimator;
}

const std::vector<MetricEstimator>& metric_estimators() {
  static const std::vector<MetricEstimator> all = [] {
    std::vector<MetricEstimator> list(estimator_table::kRows.size());
    for (size_t i = 0; i < list.size(); ++i) list[i].index_ = i;
    return list;
  }();
  return all;
}

std::vector<std::string> metric_estimator_names() {
  std::vector<std::string> names;
  for (const EstimatorRow& row : estimator_table::kRows) names.emplace_back(row.name);
  return names;
}

std::vector<std::string> metric_estimators_op() {
  std::vector<std::string> words;
  for (const EstimatorRow& row : estimator_table::kRows) {
    std::string reads, options;
    const auto add = [](std::string& list, bool is_there, const char* name) {
      if (is_there) list += (list.empty() ? "" : " ") + std::string(name);
    };
    add(reads, row.reads.v_prev, "v_prev");
    add(reads, row.reads.q, "q");
    add(reads, row.reads.q_prev, "q_prev");
    add(reads, row.reads.k, "k");
    add(reads, row.reads.temperature, "temperature");
    for (const EstimatorOption* option : row.options) {
      if (option != nullptr) add(options, true, option->name);
    }
    words.insert(words.end(), {row.name, reads, options, row.streams() ? "streams" : ""});
  }
  return words;
}

}  // namespace elliptical::ops
