// SPDX-License-Identifier: MIT
#include "elliptical/run/load_run.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <torch/torch.h>

#include <algorithm>

#include "elliptical/base/errors.h"
#include "elliptical/data/text/vocabulary.h"
#include "elliptical/run/non_finite.h"
#include "elliptical/run/train.h"

namespace elliptical::run {

void check_words(const std::string& vocabulary, const std::string& name) {
  data::Vocabulary::from_text(vocabulary, name);
}

store::Checkpoint choose_checkpoint(const RunPaths& paths,
                                    int64_t step,
                                    store::CheckpointPart part,
                                    const Notice& notice) {
  const std::string run = paths.folder.string();
  const std::vector<int64_t> steps = checkpoint_steps(paths.checkpoints());
  if (steps.empty()) {
    throw RunError(run + ": must have a checkpoint, has none yet (train it: elliptical resume " +
                   run + ")");
  }
  if (step < 0) return *store::newest_checkpoint(paths.checkpoints(), part, notice, check_words);
  if (std::find(steps.begin(), steps.end(), step) == steps.end()) {
    throw RunError(fmt::format("{}: --step must be one of its checkpoints, {}, got {}", run,
                               fmt::join(steps, ", "), step));
  }
  return store::read_checkpoint(paths.checkpoints() / checkpoint_name(step), part, check_words);
}

ChosenWeights choose_weights(const RunPaths& paths,
                             const RunOptions& options,
                             const LoadRequest& request) {
  const Weights kind = request.weights.value_or(options.train.eval_weights);
  const bool average = kind == Weights::kAverage;
  if (average && options.train.ema_decay == 0) {
    throw RunError(request.folder.string() +
                   ": train.ema_decay must be above 0 for an average of its weights, is 0 (leave "
                   "out --weights ema, or train with --set train.ema_decay=0.9999)");
  }
  const auto part = average ? store::CheckpointPart::kAverage : store::CheckpointPart::kModel;
  return {.checkpoint = choose_checkpoint(paths, request.step, part, request.hooks.notice),
          .kind = kind};
}

const std::map<std::string, at::Tensor>& ChosenWeights::tensors() const {
  return kind == Weights::kAverage ? checkpoint.average : checkpoint.model;
}

void ChosenWeights::copy_into(torch::nn::Module& model) const {
  const std::string file =
      (checkpoint.folder / (kind == Weights::kAverage ? kAverageFile : kModelFile)).string();
  store::copy_tensors(store::named_tensors(model), tensors(), file);
  // What weights that are not finite say or measure means nothing, and looks like a result.
  if (const std::string name = non_finite_tensor(store::named_tensors(model)); !name.empty()) {
    throw RunError(file + ": weights must be finite, " + name +
                   " is not (choose an older checkpoint with --step, or train it again with a "
                   "lower optimizer.learning_rate)");
  }
  model.eval();
}

LoadedRun load_run(const LoadRequest& request) {
  LoadedRun loaded;
  loaded.paths = find_run(request.folder);
  read_config(loaded.paths, loaded.options);
  const ChosenWeights weights = choose_weights(loaded.paths, loaded.options, request);
  loaded.weights = weights.kind;
  loaded.step = weights.checkpoint.state.step;
  loaded.task =
      make_task(loaded.options, tasks::TaskUse::kMeasuring, weights.checkpoint.vocabulary);
  weights.copy_into(loaded.task->model());
  return loaded;
}

Labels loaded_labels(const LoadedRun& loaded, measure::Source source) {
  Labels labels = run_labels(loaded.paths, loaded.options, *loaded.task, loaded.step, source);
  // Other weights than those that the run is measured by are another model.
  if (loaded.weights != loaded.options.train.eval_weights) {
    labels["weights"] = std::string(to_string(loaded.weights));
  }
  return labels;
}

}  // namespace elliptical::run
