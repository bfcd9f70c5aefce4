// SPDX-License-Identifier: MIT
#include "tests/report/run_folders.h"

#include <cmath>

namespace elliptical::test {

std::string config_text(const MadeRun& made) {
  const bool is_softmax = made.name == "softmax";
  return "name = \"" + made.name + "\"\nseed = " + std::to_string(made.seed) +
         "\n[task]\nname = \"" + made.task + "\"\n[task.data]\nname = \"" + made.data +
         "\"\n[task.model.attention]\nname = \"" + (is_softmax ? "softmax" : "elliptical") +
         "\"\n[train]\nsteps = " + std::to_string(made.steps) + "\n" + made.more_config;
}

std::vector<Record> records_of(const MadeRun& made) {
  std::map<std::string, LabelValue> labels = {{"source", std::string("eval")},
                                              {"data", made.data},
                                              {"split", made.split},
                                              {"perturbation", std::string("none")},
                                              {"step", made.last_step}};
  if (made.name != "softmax") labels["metric_estimator"] = std::string("difference");
  std::map<std::string, LabelValue> training = labels;
  training["source"] = std::string("train");
  training["split"] = std::string("valid");
  training["leaks_future"] = made.leaks_future;
  std::vector<Record> records = {{"perplexity", std::exp(made.clean + 0.1), 500, training}};

  const auto num_blocks = static_cast<int64_t>(made.blocks.size());
  records.push_back(
      {"perplexity", std::exp(made.clean), num_blocks > 0 ? 10 * num_blocks : 1000, labels});
  for (int64_t i = 0; i < num_blocks; ++i) {
    auto of_block = labels;
    of_block["block"] = i;
    of_block["targets"] = std::string("all");
    records.push_back(
        {"block_nll", made.clean + made.blocks[static_cast<size_t>(i)], 10, of_block});
  }
  if (made.swapped) {
    labels["perturbation"] = std::string("word_swap");
    labels["swap_rate"] = 0.025;
    records.push_back({"perplexity", std::exp(*made.swapped), 1000, labels});
    records.push_back({"perplexity_clean_targets", std::exp(*made.swapped - 0.1), 970, labels});
    records.push_back({"perplexity_swapped_targets", std::exp(*made.swapped + 3), 30, labels});
  }
  return records;
}

report::RunData run_data(const MadeRun& made) {
  return {.folder = "runs/" + made.name + "-seed-" + std::to_string(made.seed),
          .name = made.name,
          .task = made.task,
          .seed = made.seed,
          .config = config_text(made),
          .records = records_of(made)};
}

}  // namespace elliptical::test
